import { Effect, Fiber, Predicate, Schedule, Schema } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RawHttp from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u

const decodeResult = Schema.decodeUnknownEffect(
  Schema.Struct({ source_timestamp: Schema.String, requested_at: Schema.String, request_id: Schema.String })
)

layer(RunningService.layerShared(), { excludeTestServices: true })("GET /v1/validate/{vat_id}", (it) => {
  it.effect("returns the verdict of VIES and the disclosed company data", function* () {
    const { validate } = yield* RunningService.RunningService
    const reply = yield* validate("ATU12345678")
    const { request_id, requested_at, source_timestamp } = yield* decodeResult(reply.body)
    assert.strictEqual(reply.status, 200)
    assert.deepStrictEqual(reply.body, {
      valid: true,
      vat_id: "ATU12345678",
      country_code: "AT",
      vat_number: "U12345678",
      company_name: "Musterhaus GmbH & Co KG",
      company_address: "Musterstrasse 22\n12345 musterort",
      source: "vies",
      source_timestamp,
      cache: false,
      qualified_confirmation: null,
      consultation_number: null,
      request_id,
      requested_at
    })
    assert.match(source_timestamp, instant)
    assert.match(requested_at, instant)
    assert.strictEqual(reply.headers["x-request-id"], request_id)
    assert.strictEqual(reply.headers["content-type"], "application/json")
    assert.isUndefined(reply.headers["warning"])
  })

  it.effect("returns 200 with valid false for an unregistered VAT ID", function* () {
    const { validate } = yield* RunningService.RunningService
    assert.containSubset(yield* validate(vatIdEnding("FR", "999200")), { status: 200, body: { valid: false, source: "vies" } })
  })

  it.effect.each([
    ["gr 094.259-216", { vat_id: "EL094259216", country_code: "GR", vat_number: "094259216" }],
    ["123 456 780", { vat_id: "DE123456780", country_code: "DE", company_name: null, company_address: null }],
    ["ie9+12345a", { vat_id: "IE9+12345A", vat_number: "9+12345A" }],
    ["IE9*12345A", { vat_id: "IE9*12345A" }],
    ["xi 110 305 878", { vat_id: "XI110305878", country_code: "XI", vat_number: "110305878", source: "vies" }],
    ["de-123.456-781", { vat_id: "DE123456781" }]
  ] as const)("normalises the VAT ID %s", function* ([input, body]) {
    const { validate } = yield* RunningService.RunningService
    assert.containSubset(yield* validate(input), { status: 200, body })
  })

  it.effect.each([
    "/v1/validate/DE%20123%2E456%2D782",
    "/v1/validate/%44%45123456782",
    "/v1/validate/de123456782?",
    "/v1/validate/DE123456782?unknown=1&x=%ff&vat_id=ATU12345678",
    "/v1/validate/DE123456782?company_name=&company_city=%20&requester_vat_id=",
    "/v1/validate/DE123456782?force_live=false"
  ])("accepts the request %s", function* (path) {
    const { get } = yield* RunningService.RunningService
    assert.containSubset(yield* get(path), { status: 200, body: { vat_id: "DE123456782" } })
  })

  it.effect("rejects a malformed VAT ID without a call to a source", function* () {
    const { get, validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const before = yield* sandbox.checks()
    for (const input of ["DE12345678", "GB123456789", "CHE123456789", "x", "DE１２３４５６７８９", "DE123\u200b456789", " "]) {
      assertProblem(yield* validate(input), "INVALID_VAT_ID")
    }
    assertProblem(yield* get("/v1/validate/DE%00123456789"), "INVALID_VAT_ID")
    assertProblem(yield* get("/v1/validate/DE%2F123456789"), "INVALID_VAT_ID")
    assertProblem(yield* validate("D".repeat(5_000)), "INVALID_VAT_ID")
    assert.strictEqual(yield* sandbox.checks(), before)
  })

  it.effect.each([
    ["force_live", "force_live=yes"],
    ["force_live", "force_live=TRUE"],
    ["force_live", "force_live="],
    ["force_live", "force_live=1&force_live=0"],
    ["max_age", "max_age=-1"],
    ["max_age", "max_age=1h"],
    ["max_age", "max_age=2592001"],
    ["company_name", `company_name=${"x".repeat(301)}`],
    ["company_zip", "company_zip=1&company_zip=2"],
    ["requester_vat_id", "requester_vat_id=DE123456789&requester_vat_id=DE123456789"]
  ])("rejects an invalid value of %s in the query ?%s, and names the parameter", function* ([field, query]) {
    const { get } = yield* RunningService.RunningService
    const { details } = assertProblem(yield* get(`/v1/validate/ATU12345678?${query}`), "VALIDATION_ERROR")
    assert.deepStrictEqual(
      details?.map((detail) => detail.field),
      [field]
    )
  })

  it.effect.each([
    ["forcelive=1", "forcelive", "force_live"],
    ["force-live=1&company_name=x", "force-live", "force_live"],
    ["companyname=x", "companyname", "company_name"],
    ["requester_vatid=DE811115368", "requester_vatid", "requester_vat_id"],
    ["match_formats=letters", "match_formats", "match_format"]
  ] as const)(
    "rejects the query ?%s because of a misspelled parameter, and suggests the right name",
    function* ([query, field, likely]) {
      const { get } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const before = yield* sandbox.checks()
      const reply = yield* get(`/v1/validate/ATU12345678?${query}`)
      const { details, message } = assertProblem(reply, "VALIDATION_ERROR")
      assert.deepStrictEqual(details, [{ field, message: `Unknown parameter; did you mean ${likely}?` }])
      assert.include(message, field)
      assert.strictEqual(yield* sandbox.checks(), before)
    }
  )

  it.effect("passes a requester to VIES and returns the consultation number of a live answer", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    const vatId = vatIdEnding("AT", "411001")
    const query = { requester_vat_id: "811 115 368" }
    const live = yield* validate(vatId, { key, query })
    assert.containSubset(live, { status: 200, body: { cache: false } })
    assert.match(live.text, /"consultation_number":"\w{8,}"/u)
    assert.containSubset(yield* validate(vatId, { key, query }), { body: { cache: true, consultation_number: null } })
    const journal = yield* (yield* Sandbox).journal({ vatId })
    assert.deepStrictEqual(
      journal.entries.map(({ requester }) => requester),
      ["DE811115368"]
    )
  })

  it.effect("repeats the VIES call without the requester if VIES rejects the requester", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const reply = yield* validate(vatIdEnding("AT", "999202"), {
      key: yield* newKey,
      query: { requester_vat_id: "DE811115368" }
    })
    assert.containSubset(reply, { status: 200, body: { valid: true, consultation_number: null } })
  })

  it.effect(
    "rejects a requester VAT ID that is not German, and any requester VAT ID from a caller without an API key",
    function* () {
      const { newKey, validate } = yield* RunningService.RunningService
      const key = yield* newKey
      for (const requester_vat_id of ["ATU12345678", "DE1", "x", "DE１２３４５６７８９"]) {
        assertProblem(yield* validate("ATU12345678", { key, query: { requester_vat_id } }), "INVALID_REQUESTER_VAT_ID")
      }
      assertProblem(yield* validate("ATU12345678", { query: { requester_vat_id: "DE811115368" } }), "UNAUTHORIZED")
    }
  )

  it.effect("shares source calls among 20 concurrent requests for one VAT ID, and charges each request", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    const vatId = vatIdEnding("PL", "420020")
    yield* sandbox.configure({ latency_ms: 300 })
    const asked = Array.from({ length: 20 }, () => validate(vatId, { key, query: { force_live: "1" } }))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.isBelow(yield* sandbox.checks({ vatId }), 20)
    yield* sandbox.reset
    for (const reply of replies) assert.containSubset(reply, { status: 200, body: { valid: true, cache: false } })
    const used = replies.map(({ headers }) => headers["x-service-usage"]?.split("/")[0]).toSorted((a, b) => Number(a) - Number(b))
    assert.deepStrictEqual(
      used,
      replies.map((_, index) => String(index + 1))
    )
  })

  it.effect("returns a consultation number to each concurrent caller with the same requester", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const vatId = vatIdEnding("PL", "420021")
    const keys = [yield* newKey, yield* newKey]
    yield* sandbox.configure({ latency_ms: 300 })
    const asked = keys.map((key) => validate(vatId, { key, query: { requester_vat_id: "DE811115368" } }))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    yield* sandbox.reset
    const numbers = replies.map(({ text }) => /"consultation_number":"(\w{8,})"/u.exec(text)?.[1])
    assert.lengthOf(new Set(numbers.filter(Predicate.isNotUndefined)), 2, numbers.join())
  })

  it.effect("continues a shared source call after the first caller has disconnected", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    const vatId = vatIdEnding("PL", "420030")
    yield* sandbox.configure({ latency_ms: 500 })
    const gone = yield* Effect.forkChild(validate(vatId, { key }))
    yield* sandbox.until(({ vies }) => vies.in_flight === 1)
    const others = yield* Effect.forkChild(Effect.all([validate(vatId), validate(vatId)], { concurrency: "unbounded" }))
    yield* validate("nonsense")
    yield* Fiber.interrupt(gone)
    for (const reply of yield* Fiber.join(others)) assert.containSubset(reply, { status: 200, body: { valid: true } })
    yield* sandbox.reset
  })

  it.effect.each([
    ["charges a look-up whose client closes its side of the connection", "end", 1],
    ["does not charge a look-up whose client resets the connection before the source answers", "leave", 0]
  ] as const)("%s", function* ([_, giveUp, used]) {
    const { get, newKey, port } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    yield* sandbox.configure({ latency_ms: 500 })
    const client = yield* RawHttp.open(port)
    yield* client.send(`GET /v1/validate/${vatIdEnding("PL", `42004${used}`)} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`)
    yield* sandbox.until(({ vies }) => vies.in_flight === 1)
    yield* client[giveUp]
    yield* sandbox.until(({ vies }) => vies.in_flight === 0)
    const { entries } = yield* sandbox.journal()
    assert.strictEqual(entries.at(-1)?.abandoned, used === 0)
    yield* sandbox.reset
    const usage = get("/v1/usage", { key })
    const isCounted = ({ text }: { readonly text: string }) => text.includes(`"used":${used}`)
    yield* Effect.repeat(usage, { schedule: Schedule.spaced("10 millis"), until: isCounted })
  })
})

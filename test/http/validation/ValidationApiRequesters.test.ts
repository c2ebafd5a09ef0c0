import { Effect, Schedule, Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { muster, newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import { assert, layer } from "#test/support/Test.ts"

const prefixes = [...memberStates.keys()]
const { company_city: city, company_name: name } = muster
const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))

/** Submits a batch and returns its results as a page once none of its items is pending. */
const resultsOf = Effect.fnUntraced(function* (
  service: RunningService.Replica,
  key: string,
  items: ReadonlyArray<object>,
  query: Readonly<Record<string, string>> = {}
) {
  const submitted = yield* service.post("/v1/batches", { items }, { key, query })
  const { batch_id } = yield* decodeBatch(submitted.body)
  yield* Effect.repeat(service.get(`/v1/batches/${batch_id}`, { key, query: { wait: "20" } }), {
    schedule: Schedule.spaced("50 millis"),
    until: ({ text }) => text.includes('"pending":0')
  })
  const path = `/v1/batches/${batch_id}/results`
  const [json, ndjson, csv] = yield* Effect.forEach(["application/json", "application/x-ndjson", "text/csv"], (accept) =>
    service.get(path, { key, query: accept === "application/json" ? { limit: "500" } : {}, headers: { accept } })
  )
  return { json, ndjson, csv }
})

layer(RunningService.layer({ REQUESTER_COUNTRIES: "EU" }), { excludeTestServices: true })(
  "a service that allows requesters of all member states",
  (it) => {
    it.effect.each(prefixes)("gets a consultation number for a requester of %s by GET and by POST", function* (prefix) {
      const { newKey, post, validate } = yield* RunningService.RunningService
      const key = yield* newKey
      const requester_vat_id = vatIdEnding(prefix, "123456")
      const got = yield* validate(vatIdEnding("FR", "510001"), { key, query: { requester_vat_id, force_live: "1" } })
      assert.match(got.text, /"consultation_number":"\w{8,}"/u)
      const vat_id = vatIdEnding("FR", "510002")
      const posted = yield* post("/v1/validations", { vat_id, requester_vat_id, force_live: true }, { key })
      assert.match(posted.text, /"consultation_number":"\w{8,}"/u)
      const journal = yield* (yield* Sandbox).journal({ vatId: vat_id })
      assert.strictEqual(journal.entries.at(-1)?.requester, requester_vat_id)
    })

    it.effect.each(prefixes)("answers without a number if VIES rejects a requester of %s", function* (prefix) {
      const { newKey, post, validate } = yield* RunningService.RunningService
      const key = yield* newKey
      const requester_vat_id = vatIdEnding(prefix, "999202")
      const body = { valid: true, consultation_number: null }
      const query = { requester_vat_id, force_live: "1" }
      assert.containSubset(yield* validate(vatIdEnding("FR", "510003"), { key, query }), { status: 200, body })
      const submission = { vat_id: vatIdEnding("FR", "510004"), requester_vat_id, force_live: true }
      assert.containSubset(yield* post("/v1/validations", submission, { key }), { status: 200, body })
    })

    it.effect.each(prefixes)("refuses a malformed requester of %s, and names what is allowed", function* (prefix) {
      const { newKey, post, validate } = yield* RunningService.RunningService
      const key = yield* newKey
      const requester_vat_id = `${prefix}1`
      for (const reply of [
        yield* validate(vatIdEnding("FR", "510005"), { key, query: { requester_vat_id } }),
        yield* post("/v1/validations", { vat_id: vatIdEnding("FR", "510005"), requester_vat_id }, { key })
      ])
        assert.match(assertProblem(reply, "INVALID_REQUESTER_VAT_ID").message, /EU member state or of Northern Ireland \(XI\)/u)
    })

    it.effect.each(prefixes)("accepts a requester of %s with company data only if it is German", function* (prefix) {
      const service = yield* RunningService.RunningService
      const key = yield* newPaidKey(service)
      const requester_vat_id = vatIdEnding(prefix, "123456")
      const vat_id = vatIdEnding("DE", "510006")
      for (const reply of [
        yield* service.validate(vat_id, { key, query: { ...muster, requester_vat_id } }),
        yield* service.post("/v1/validations", { vat_id, requester_vat_id, company: { name, city } }, { key })
      ]) {
        if (prefix === "DE") assert.match(reply.text, /"receipt_id":"VP-/u)
        else assert.match(assertProblem(reply, "INVALID_REQUESTER_VAT_ID").message, /German VAT ID/u)
      }
    })

    it.effect("sends VIES the requester of each item of a batch, and gets a number unless VIES rejects it", function* () {
      const service = yield* RunningService.RunningService
      const items = prefixes.flatMap((prefix) => [
        { custom_id: `${prefix} accepted`, vat_id: vatIdEnding("FR", "540001"), requester_vat_id: vatIdEnding(prefix, "123456") },
        { custom_id: `${prefix} rejected`, vat_id: vatIdEnding("FR", "540001"), requester_vat_id: vatIdEnding(prefix, "999202") }
      ])
      const { csv } = yield* resultsOf(service, yield* service.newKey, items, { max_age: "0" })
      const rows = (csv?.text ?? "").trimEnd().split("\r\n").slice(1, -1)
      assert.lengthOf(rows, 56)
      for (const row of rows)
        assert.match(row, row.includes("accepted") ? /,"final",true,.*,"\w{8,}",,$/u : /,"final",true,.*,,,$/u)
    })

    it.effect.each(prefixes)("refuses a batch with a malformed requester of %s, and names the item", function* (prefix) {
      const { newKey, post } = yield* RunningService.RunningService
      const first = { custom_id: "a", vat_id: "FR1", requester_vat_id: "not checked" }
      const items = [first, { custom_id: "b", vat_id: vatIdEnding("FR", "540002"), requester_vat_id: `${prefix}1` }]
      const { message } = assertProblem(yield* post("/v1/batches", { items }, { key: yield* newKey }), "INVALID_REQUESTER_VAT_ID")
      assert.match(message, /^Item 2: requester_vat_id must be your own VAT ID: of an EU member state/u)
    })

    it.effect("asks the BZSt with the operator's number if the caller's requester is not German", function* () {
      const { newKey, validate } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const vatId = vatIdEnding("DE", "510007")
      yield* sandbox.configure({ vies_unavailable_member_states: ["DE"] })
      const reply = yield* validate(vatId, { key: yield* newKey, query: { requester_vat_id: vatIdEnding("FR", "123456") } })
      yield* sandbox.reset
      assert.containSubset(reply, { status: 200, body: { source: "bzst", consultation_number: null } })
    })
  }
)

layer(RunningService.layer({ REQUESTER_VAT_ID: "FR40303265045" }), { excludeTestServices: true })(
  "a service with a requester of the operator",
  (it) => {
    it.effect(
      "gets a consultation number for each item of a batch, with one call for each",
      function* () {
        const service = yield* RunningService.RunningService
        const sandbox = yield* Sandbox
        const before = yield* sandbox.checks()
        const items = Array.from({ length: 1_000 }, (_, index) => ({
          custom_id: String(index),
          vat_id: vatIdEnding(prefixes[index % prefixes.length] ?? "AT", `5${20_000 + index}`)
        }))
        const { csv, json, ndjson } = yield* resultsOf(service, yield* service.newKey, items)
        assert.strictEqual((yield* sandbox.checks()) - before, 1_000)
        for (const [reply, count] of [
          [json, 500],
          [ndjson, 1_000]
        ] as const)
          assert.lengthOf([...(reply?.text.matchAll(/"consultation_number":"\w{8,}"/gu) ?? [])], count)
        const rows = (csv?.text ?? "").trimEnd().split("\r\n")
        assert.match(rows[0] ?? "", /,consultation_number,reference,receipt_id$/u)
        assert.lengthOf(
          rows.filter((row) => /,"\w{8,}",,$/u.test(row)),
          1_000
        )
      },
      60_000
    )

    it.effect("names it to VIES for callers with a key alone, and stores it with the answer", function* () {
      const { newKey, validate } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const anonymous = vatIdEnding("IT", "530001")
      assert.containSubset(yield* validate(anonymous), { status: 200, body: { consultation_number: null } })
      assert.containSubset(yield* sandbox.journal({ vatId: anonymous }), { entries: [{ requester: null }] })
      const vatId = vatIdEnding("IT", "530002")
      const key = yield* newKey
      assert.match((yield* validate(vatId, { key })).text, /"consultation_number":"\w{8,}"/u)
      assert.containSubset(yield* validate(vatId, { key }), { body: { cache: true, consultation_number: null } })
      assert.containSubset(yield* sandbox.journal({ vatId }), { entries: [{ requester: "FR40303265045" }] })
      const log = yield* RunningService.everythingLogged
      assert.match(log, new RegExp(`"requester_vat_id":"FR40303265045"[^\\n]*"served":"live"[^\\n]*"vat_id":"${vatId}"`, "u"))
      assert.match(log, new RegExp(`"requester_vat_id":null[^\\n]*"served":"cache"[^\\n]*"vat_id":"${vatId}"`, "u"))
    })

    it.effect("prefers the caller's own requester, which must be German by default", function* () {
      const { newKey, validate } = yield* RunningService.RunningService
      const key = yield* newKey
      const vatId = vatIdEnding("IT", "530003")
      yield* validate(vatId, { key, query: { requester_vat_id: "DE811115368" } })
      assert.containSubset(yield* (yield* Sandbox).journal({ vatId }), { entries: [{ requester: "DE811115368" }] })
      const refused = yield* validate(vatId, { key, query: { requester_vat_id: "FR40303265045" } })
      assert.match(assertProblem(refused, "INVALID_REQUESTER_VAT_ID").message, /German VAT ID/u)
    })

    it.effect("shares one call among concurrent callers with keys", function* () {
      const { newKey, validate } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const vatId = vatIdEnding("IT", "530004")
      const keys = [yield* newKey, yield* newKey]
      yield* sandbox.configure({ latency_ms: 300 })
      const replies = yield* Effect.forEach(keys, (key) => validate(vatId, { key }), { concurrency: "unbounded" })
      const checks = yield* sandbox.checks({ vatId })
      yield* sandbox.reset
      const numbers = replies.map(({ text }) => /"consultation_number":"(\w{8,})"/u.exec(text)?.[1])
      assert.isDefined(numbers[0])
      assert.strictEqual(numbers[0], numbers[1])
      assert.strictEqual(checks, 1)
    })
  }
)

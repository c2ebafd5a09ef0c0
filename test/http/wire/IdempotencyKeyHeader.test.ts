import { Clock, Effect, Fiber, Schema } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import { confirm, muster, newPaidKey, receiptsPath } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const path = "/v1/validations"

const countEvents = Effect.fnUntraced(function* (vatId: string) {
  return yield* Rows.one(
    { events: Schema.Int, units: Schema.Int },
    (sql) => sql`SELECT count(*)::int AS events, coalesce(sum(units), 0)::int AS units FROM vatproof.events
      WHERE strpos(data, ${vatId}) > 0`
  )
})

/** Asserts that each concurrent request got the same answer as the last one, or the error that an earlier request is in progress. */
const assertOneAnswer = (replies: ReadonlyArray<Reply>, last: Reply) => {
  assert.strictEqual(last.headers["idempotent-replayed"], "true")
  const answered = replies.filter(({ status }) => status === last.status)
  assert.isNotEmpty(answered)
  for (const reply of answered) assert.deepStrictEqual(reply.body, last.body)
  for (const reply of replies) if (reply.status !== last.status) assertProblem(reply, "IDEMPOTENCY_IN_PROGRESS")
}

layer(RunningService.layerShared(), { excludeTestServices: true })("An Idempotency-Key", (it) => {
  it.effect("causes one validation and one charge for 200 concurrent requests on two replicas", function* () {
    const first = yield* RunningService.RunningService
    const second = yield* RunningService.make()
    const key = yield* newPaidKey(first)
    const query = { requester_vat_id: "DE811115368", ...muster }
    for (const [vatId, ask] of [
      ["ATU10660001", ({ post }, headers) => post(path, { vat_id: "ATU10660001" }, { key, headers })],
      [
        "ATU10660002",
        ({ post }, headers) =>
          post(path, { vat_id: "ATU10660002" }, { key, headers: { ...headers, prefer: "respond-async, wait=20" } })
      ],
      ["ATU10660003", ({ validate }, headers) => validate("ATU10660003", { key, headers })],
      ["DE100660001", ({ validate }, headers) => validate("DE100660001", { key, headers, query })]
    ] as const satisfies ReadonlyArray<
      readonly [string, (service: typeof first, headers: Record<string, string>) => ReturnType<typeof first.get>]
    >) {
      const asked = { "idempotency-key": vatId }
      const replies = yield* Effect.forEach(
        Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? first : second)),
        (service) => ask(service, asked),
        { concurrency: "unbounded" }
      )
      assertOneAnswer(replies, yield* ask(first, asked))
      assert.deepStrictEqual(yield* countEvents(vatId), { events: 2, units: 1 })
    }
  })

  it.effect("is in progress until its first request is answered, also for requests that accept a later answer", function* () {
    const first = yield* RunningService.RunningService
    const second = yield* RunningService.make()
    const sandbox = yield* Sandbox
    const key = yield* first.newKey
    const ask = ({ post }: typeof first, more: Readonly<Record<string, string>> = {}) =>
      post(path, { vat_id: "ATU10660006" }, { key, headers: { "idempotency-key": "sync and async", ...more } })
    const later = { prefer: "respond-async" }
    yield* sandbox.configure({ latency_ms: 500 })
    const asked = yield* Effect.forkChild(ask(first))
    yield* sandbox.until(({ vies }) => vies.in_flight === 1)
    for (const service of [first, second]) assertProblem(yield* ask(service, later), "IDEMPOTENCY_IN_PROGRESS")
    const answered = yield* Fiber.join(asked)
    assert.containSubset(answered, { status: 200, body: { status: "final", cache: false } })
    assert.strictEqual(yield* sandbox.checks({ vatId: "ATU10660006" }), 1)
    yield* sandbox.reset
    assertOneAnswer([answered], yield* ask(second, later))
    assert.deepStrictEqual(yield* countEvents("ATU10660006"), { events: 2, units: 1 })
  })

  it.effect("causes one validation for concurrent requests of which every second one accepts a later answer", function* () {
    const replicas = [yield* RunningService.RunningService, yield* RunningService.make()] as const
    const key = yield* replicas[0].newKey
    const ask = (vat_id: string) => (index: number) =>
      replicas[index % 4 < 2 ? 0 : 1].post(
        path,
        { vat_id },
        { key, headers: { "idempotency-key": vat_id, ...(index % 2 === 0 ? {} : { prefer: "respond-async, wait=20" }) } }
      )
    for (const vatId of ["ATU10660011", "ATU10660012", "ATU10660013", "ATU10660014"]) {
      const requests = Array.from({ length: 40 }, (_, index) => index)
      const replies = yield* Effect.forEach(requests, ask(vatId), { concurrency: "unbounded" })
      for (const reply of replies) if (reply.status > 202) assertProblem(reply, "IDEMPOTENCY_IN_PROGRESS")
      const last = yield* ask(vatId)(1)
      assertOneAnswer(
        replies.filter(({ status }) => status !== 202),
        last
      )
      assert.deepStrictEqual(yield* countEvents(vatId), { events: 2, units: 1 })
    }
  })

  it.effect("sets `requested_at` to the time at which the request arrived, not to the time of the answer", function* () {
    const { newKey, post, validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    const keyed = { key, headers: { "idempotency-key": "slow" } }
    yield* sandbox.configure({ latency_ms: 300 })
    for (const request of [validate("ATU10660007", keyed), post(path, { vat_id: "ATU10660008" }, { key })]) {
      const asked = yield* Effect.forkChild(request)
      yield* sandbox.until(({ vies }) => vies.in_flight === 1)
      const waiting = yield* Clock.currentTimeMillis
      const { text } = yield* Fiber.join(asked)
      const requestedAt = /"requested_at":"([^"]+)"/u.exec(text)?.[1] ?? ""
      assert.isAtMost(Date.parse(requestedAt), waiting)
    }
    yield* sandbox.reset
  })

  it.effect("can be used again after a 5xx response, and is rejected for a different request after a success", function* () {
    const { newKey, post, validate } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    const asked = { key, headers: { "idempotency-key": "failed" } }
    yield* sandbox.configure({ vies_unavailable_member_states: ["EE"] })
    assertProblem(yield* post(path, { vat_id: "EE106600031" }, asked), "SOURCE_UNAVAILABLE")
    assertProblem(yield* validate("EE106600031", asked), "SOURCE_UNAVAILABLE")
    yield* sandbox.configure({ vies_unavailable_member_states: [] })
    const reply = yield* post(path, { vat_id: "EE106600031" }, asked)
    assert.strictEqual(reply.status, 200, reply.text)
    assert.isUndefined(reply.headers["idempotent-replayed"])
    assertProblem(yield* post(path, { vat_id: "EE106600031", force_live: true }, asked), "IDEMPOTENCY_KEY_REUSED")
    assertProblem(yield* validate("EE106600031", asked), "IDEMPOTENCY_KEY_REUSED")
    // Another API key may use the same Idempotency-Key.
    const other = yield* post(path, { vat_id: "ATU10660004" }, { ...asked, key: yield* newKey })
    assert.containSubset(other, { status: 200, body: { vat_id: "ATU10660004" } })
  })

  it.effect("returns the first response again for a repeated GET, including the warning and usage headers", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service)
    const query = { requester_vat_id: "DE811115368", company_name: "Muster GmbH", match_format: "letters" }
    const ask = service.validate("DE100660002", { key, query, headers: { "idempotency-key": '"a confirmation"' } })
    const [first, second] = [yield* ask, yield* ask]
    assert.containSubset(first, { status: 200, body: { valid: true, qualified_confirmation: { name_match: "D" } } })
    assert.strictEqual(first.headers["x-request-id"], /"request_id":"([^"]+)"/u.exec(first.text)?.[1])
    assert.deepStrictEqual([second.status, second.text], [200, first.text])
    for (const name of ["warning", "x-service-usage"]) assert.strictEqual(second.headers[name], first.headers[name])
    assert.containSubset((yield* service.get(receiptsPath, { key })).body, { data: [{ target_vat_id: "DE100660002" }] })
    const other = { ...query, match_format: "words" }
    const headers = { "idempotency-key": "a confirmation" }
    assertProblem(yield* service.validate("DE100660002", { key, query: other, headers }), "IDEMPOTENCY_KEY_REUSED")
    // Without the header each of two equal requests issues a new confirmation.
    assert.notStrictEqual((yield* confirm(service, "DE100660002", key)).text, (yield* confirm(service, "DE100660002", key)).text)
  })

  it.effect("compares VAT IDs normalized, and other fields as they were sent", function* () {
    const { newKey, post, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    const asked = { key, headers: { "idempotency-key": "spelled" } }
    const body = { vat_id: "ATU10660010", requester_vat_id: "DE811115368", reference: "a 1" }
    const first = yield* post(path, body, asked)
    const again = yield* post(path, { ...body, vat_id: "at-u 10660010", requester_vat_id: "811 115 368" }, asked)
    assert.deepStrictEqual([again.headers["idempotent-replayed"], again.text], ["true", first.text])
    assertProblem(yield* post(path, { ...body, reference: "A 1" }, asked), "IDEMPOTENCY_KEY_REUSED")
    assertProblem(yield* post(path, { ...body, vat_id: "ATU10660011" }, asked), "IDEMPOTENCY_KEY_REUSED")
    const got = { key, headers: { "idempotency-key": "spelled by GET" } }
    yield* validate("ATU10660010", got)
    assert.strictEqual((yield* validate("atu 10660010", got)).headers["idempotent-replayed"], "true")
  })

  it.effect("requires an API key on a GET, and has at most 255 characters", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    assertProblem(yield* validate("ATU10660005", { headers: { "idempotency-key": "x" } }), "UNAUTHORIZED")
    const { details } = assertProblem(
      yield* validate("ATU10660005", { key, headers: { "idempotency-key": "x".repeat(256) } }),
      "VALIDATION_ERROR"
    )
    assert.deepStrictEqual(
      details?.map(({ field }) => field),
      ["Idempotency-Key"]
    )
  })
})

import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Sandbox } from "#infra/sandbox/Sandbox.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"

const path = "/v1/validations"

const countEvents = Effect.fnUntraced(function* (vatId: string) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ events: Schema.Int, units: Schema.Int }),
    execute: (about) => sql`SELECT count(*)::int AS events, coalesce(sum(units), 0)::int AS units FROM vatproof.events
      WHERE strpos(data, ${about}) > 0`
  })
  return yield* find(vatId)
})

layer(RunningService.layer(), { excludeTestServices: true })("An Idempotency-Key on POST /v1/validations", (it) => {
  it.effect(
    "makes 200 concurrent requests on two replicas one validation and one charge",
    () =>
      Effect.gen(function* () {
        const first = yield* RunningService.RunningService
        const second = yield* RunningService.make()
        const key = yield* first.newKey
        for (const [vat_id, prefer] of [
          ["ATU10660001", undefined],
          ["ATU10660002", "respond-async, wait=20"]
        ] as const) {
          const headers = { "idempotency-key": "one", ...(prefer === undefined ? {} : { prefer }) }
          const asked = { key, headers: { ...headers, "idempotency-key": vat_id } }
          const replies = yield* Effect.forEach(
            Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? first : second)),
            ({ post }) => post(path, { vat_id }, asked),
            { concurrency: 200 }
          )
          const last = yield* first.post(path, { vat_id }, asked)
          assert.strictEqual(last.headers["idempotent-replayed"], "true")
          const answered = replies.filter(({ status }) => status === 200)
          assert.isNotEmpty(answered)
          for (const reply of answered) assert.deepStrictEqual(reply.body, last.body)
          for (const reply of replies) if (reply.status !== 200) assertProblem(reply, "IDEMPOTENCY_IN_PROGRESS")
          assert.deepStrictEqual(yield* countEvents(vat_id), { events: 2, units: 1 })
        }
      }),
    60_000
  )

  it.effect("is refused for another request, and takes no key with a 5xx", () =>
    Effect.gen(function* () {
      const { newKey, post } = yield* RunningService.RunningService
      const sandbox = yield* Sandbox
      const key = yield* newKey
      const asked = { key, headers: { "idempotency-key": "failed" } }
      yield* sandbox.configure({ vies_unavailable_member_states: ["EE"] })
      assertProblem(yield* post(path, { vat_id: "EE106600031" }, asked), "SOURCE_UNAVAILABLE")
      yield* sandbox.configure({ vies_unavailable_member_states: [] })
      const reply = yield* post(path, { vat_id: "EE106600031" }, asked)
      assert.strictEqual(reply.status, 200, reply.text)
      assert.isUndefined(reply.headers["idempotent-replayed"])
      assertProblem(yield* post(path, { vat_id: "EE106600031", force_live: true }, asked), "IDEMPOTENCY_KEY_REUSED")
      // Another key is another client.
      const other = yield* post(path, { vat_id: "ATU10660004" }, { ...asked, key: yield* newKey })
      assert.containSubset(other, { status: 200, body: { vat_id: "ATU10660004" } })
    })
  )
})

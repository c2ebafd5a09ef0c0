/** What becomes of those who call on although their minute is full or their quota spent: refused, and in nobody's way. */
import { assert, layer } from "@effect/vitest"
import { Effect, Metric, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as StoreMetrics from "#events/StoreMetrics.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"

const counted = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ taken: Schema.Int }),
    execute: () => sql`SELECT sum(taken)::int AS taken FROM vatproof.rate_windows`
  })(undefined)
).pipe(Effect.map(({ taken }) => taken))

/** A call, and whether it was counted in its minute: only the log does that. */
const call = Effect.fnUntraced(function* (replica: RunningService.Replica, key: string) {
  const before = yield* counted
  const reply = yield* replica.validate("ATU12345678", { key })
  return { reply, isCounted: (yield* counted) !== before }
})

/** A key that has just been refused because its minute is full. */
const refusedCaller = Effect.gen(function* () {
  const replica = yield* RunningService.make({ PLAN_FREE_PER_MINUTE: "2" })
  const key = yield* replica.newKey
  for (const remaining of ["1", "0"]) {
    const { headers, status } = yield* replica.validate("ATU12345678", { key })
    assert.deepStrictEqual([status, /r=(\d+)/u.exec(headers["ratelimit"] ?? "")?.[1]], [200, remaining])
  }
  const { isCounted, reply } = yield* call(replica, key)
  assertProblem(reply, "RATE_LIMIT_EXCEEDED")
  assert.isTrue(isCounted)
  return { replica, key, refused: reply }
})

layer(RunningService.layerGround, { excludeTestServices: true })("who calls on", (it) => {
  it.effect("against a full minute is refused without the log, for a moment", () =>
    Effect.gen(function* () {
      const { key, refused, replica } = yield* refusedCaller
      // On a machine that takes long for a call the log is asked again.
      const { reply } = yield* Effect.repeat(call(replica, key), { until: ({ isCounted }) => !isCounted })
      assertProblem(reply, "RATE_LIMIT_EXCEEDED")
      assert.deepStrictEqual(Object.keys(reply.headers).toSorted(), Object.keys(refused.headers).toSorted())
      assert.strictEqual(reply.headers["x-service-usage"], refused.headers["x-service-usage"])
      yield* replica.travel("1 second")
      assert.isTrue((yield* call(replica, key)).isCounted)
    })
  )

  it.effect("against a full minute has the answer of one who took the long way", () =>
    Effect.gen(function* () {
      const { key, refused, replica } = yield* refusedCaller
      const long = yield* replica.validate("ATU12345678", { key, query: { force_live: "0" } })
      const without = ({ headers, text }: typeof refused) => ({
        text: text.replace(/"request_id":"[^"]*"/u, ""),
        names: Object.keys(headers).toSorted(),
        ...Object.fromEntries(["content-type", "ratelimit-policy", "x-service-usage"].map((name) => [name, headers[name]]))
      })
      assert.deepStrictEqual(without(refused), without(long))
      assert.strictEqual(refused.headers["content-length"], String(refused.text.length))
      assert.include(refused.text, `"request_id":"${refused.headers["x-request-id"]}"`)
      assert.strictEqual(refused.headers["retry-after"], /t=(\d+)/u.exec(refused.headers["ratelimit"] ?? "")?.[1])
    })
  )

  it.effect.each(["1 second", "-1 minute"] as const)("with a larger plan is served when the clock has moved by %s", (moved) =>
    Effect.gen(function* () {
      const { key, replica } = yield* refusedCaller
      yield* RunningService.setPlan(key, "business")
      yield* replica.travel(moved)
      assert.strictEqual((yield* replica.validate("ATU12345678", { key })).status, 200)
    })
  )

  it.effect("in the last second of a full minute asks the log, because the next call may be in a new one", () =>
    Effect.gen(function* () {
      const { key, replica } = yield* refusedCaller
      const sql = yield* SqlClient.SqlClient
      yield* sql`UPDATE vatproof.rate_windows SET ends_at = clock_timestamp() + interval '0.9 seconds'`
      yield* replica.travel("1 second")
      yield* replica.validate("ATU12345678", { key })
      assert.isTrue((yield* call(replica, key)).isCounted)
    })
  )

  it.effect("after another replica has spent the quota takes the long way, and spoils no more than one batch", () =>
    Effect.gen(function* () {
      const quota = { PLAN_FREE_PER_MONTH: "6" }
      const [one, other] = [yield* RunningService.make(quota), yield* RunningService.make(quota)]
      const key = yield* one.newKey
      for (const replica of [one, one, other, other, other, other]) {
        assert.strictEqual((yield* replica.validate("ATU12345678", { key })).status, 200)
      }
      const decided = Effect.map(Metric.value(StoreMetrics.decidedBatches), ({ count }) => Number(count))
      const before = yield* decided
      for (let call = 0; call < 5; call += 1) {
        assertProblem(yield* one.validate("ATU12345678", { key }), "PAYMENT_REQUIRED")
      }
      assert.strictEqual((yield* decided) - before, 1)
    })
  )
})

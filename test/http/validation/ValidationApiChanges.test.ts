/** Changes of keys and plans during a call to a source. */
import { Effect, Fiber, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import { confirm } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const revoke = Effect.fnUntraced(function* (key: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE vatproof.api_keys SET revoked_at = now() WHERE key_sha256 = sha256(${key}::text::bytea)`
})

/** Runs `change` during a call to a source. */
const during = Effect.fnUntraced(function* <E, R, E2, R2>(
  source: "vies" | "bzst",
  call: Effect.Effect<Reply, E, R>,
  change: Effect.Effect<void, E2, R2>
) {
  const sandbox = yield* Sandbox
  yield* sandbox.configure({ latency_ms: 500 })
  const asked = yield* Effect.forkChild(call)
  yield* sandbox.until((journal) => journal[source].in_flight === 1)
  yield* change
  const reply = yield* Fiber.join(asked)
  yield* sandbox.reset
  return reply
})

/** Returns the numbers of events, of charged units, and of calls in the current minute of a key. */
const recorded = Effect.fnUntraced(function* (key: string) {
  return yield* Rows.one(
    { events: Schema.Int, units: Schema.Int, calls: Schema.Int },
    (sql) => sql`SELECT (SELECT count(*)::int FROM vatproof.events WHERE stream_id = 'key-' || key_id) AS events,
      (SELECT coalesce(sum(units), 0)::int FROM vatproof.events WHERE meter_id LIKE 'key-' || key_id || '/%') AS units,
      (SELECT coalesce(sum(taken), 0)::int FROM vatproof.rate_windows WHERE bucket = 'minute/key-' || key_id) AS calls
      FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea)`
  )
})

const start = Effect.gen(function* () {
  const service = yield* RunningService.RunningService
  return { ...service, service, key: yield* service.newKey }
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a validation that waits for a source", (it) => {
  it.effect("fails with 401 and without a charge if its API key is revoked", function* () {
    const { key, validate } = yield* start
    for (const vatId of [vatIdEnding("AT", "413001"), vatIdEnding("AT", "999300")]) {
      const other = yield* start
      const reply = yield* during("vies", other.validate(vatId, { key: other.key }), revoke(other.key))
      assertProblem(reply, "UNAUTHORIZED")
      assert.deepStrictEqual(yield* recorded(other.key), { events: 0, units: 0, calls: 1 })
    }
    // An answer that was not recorded is not cached.
    assert.containSubset(yield* validate(vatIdEnding("AT", "413001"), { key }), { status: 200, body: { source: "vies" } })
  })

  it.effect("gets the limits of the new plan if its API key is upgraded to a larger plan", function* () {
    const { key, validate } = yield* start
    yield* RunningService.setPlan(key, "starter")
    const change = RunningService.setPlan(key, "business")
    const reply = yield* during("vies", validate(vatIdEnding("AT", "413002"), { key }), change)
    assert.deepStrictEqual([reply.status, reply.headers["x-service-usage"]], [200, "1/1000000"])
    assert.deepStrictEqual(yield* recorded(key), { events: 1, units: 1, calls: 1 })
    assert.strictEqual((yield* validate("ATU12345678", { key })).headers["x-service-usage"], "2/1000000")
  })

  it.effect("fails with 429 and without a charge if its API key gets a plan whose quota is used up", function* () {
    const { key, validate } = yield* start
    yield* validate("ATU12345678", { key })
    const change = RunningService.setPlan(key, "starter")
    const reply = yield* during("vies", validate(vatIdEnding("AT", "413003"), { key }), change)
    assertProblem(reply, "RATE_LIMIT_EXCEEDED")
    assert.strictEqual(reply.headers["x-service-usage"], "1/1")
    assert.deepStrictEqual(yield* recorded(key), { events: 1, units: 1, calls: 2 })
  })

  it.effect("fails with 402 and without a receipt if its API key gets a plan without qualified confirmations", function* () {
    const { key, service } = yield* start
    yield* RunningService.setPlan(key, "business")
    const change = RunningService.setPlan(key, "free")
    assertProblem(yield* during("bzst", confirm(service, "DE100413005", key), change), "PAYMENT_REQUIRED")
    assert.deepStrictEqual(yield* recorded(key), { events: 0, units: 0, calls: 1 })
    yield* RunningService.setPlan(key, "business")
    assert.containSubset(yield* service.get("/v1/qualified-confirmations", { key }), { status: 200, body: { data: [] } })
  })
})

/** Ends the connections of transactions while they wait for the log. Every request must be refused as unavailable, with a time for the retry. */
import { Effect, Fiber, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Runs a request while the log is locked, and ends each connection that waits for the log until the request has its response. */
const whileConnectionsEnd = Effect.fnUntraced(function* <A, E, R>(request: Effect.Effect<A, E, R>) {
  const sql = yield* SqlClient.SqlClient
  const endAll = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%vatproof.append%'`
  const ended = Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(request)
    const isDone = Effect.sync(() => fiber.pollUnsafe() !== undefined)
    yield* Effect.repeat(Effect.andThen(endAll, isDone), { until: (done) => done, schedule: Schedule.spaced("5 millis") })
    return yield* Fiber.join(fiber)
  })
  return yield* MigratedDatabase.whileLocked("SELECT FROM vatproof.logs WHERE log_id = 0 FOR UPDATE", ended)
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a transaction whose connection ends", (it) => {
  it.effect("is refused as unavailable, and succeeds when it is repeated", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    const key = yield* service.newKey
    const items = [{ custom_id: "1", vat_id: "ATU12345675" }]
    const requests = {
      registration: service.post("/v1/register", { agent_id: "lost" }),
      "sign-up": People.signUp(service, "lost@example.com"),
      "issue of a key": service.post("/v1/auth/api-keys", {}, People.bearing(token)),
      batch: service.post("/v1/batches", { items }, { key }),
      "rotation of a key": service.post("/v1/keys/rotate", {}, { key })
    }
    for (const [name, request] of Object.entries(requests)) {
      const refused = yield* whileConnectionsEnd(request)
      assert.strictEqual(refused.status, 503, name)
      assertProblem(refused, "SERVICE_UNAVAILABLE")
      assert.isAtLeast(Number(refused.headers["retry-after"]), 1, name)
      assert.isBelow((yield* request).status, 300, name)
    }
  })
})

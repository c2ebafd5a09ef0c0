import { Effect, Fiber, Metric, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { MaxInFlight } from "#http/pipeline/HttpBoundary.ts"
import * as HttpMetrics from "#http/pipeline/HttpMetrics.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { send } from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

layer(RunningService.layerSharedGround, { excludeTestServices: true })("requests beyond the concurrency limit", (it) => {
  it.effect("are rejected at once until others are answered", function* () {
    const { newKey, port, validate } = yield* RunningService.start().pipe(Effect.provideService(MaxInFlight, 2))
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    const slow = validate("ATU12345678", { key, query: { force_live: "1" } })
    const underWay = Metric.value(HttpMetrics.activeRequests({ "http.request.method": "GET", "url.scheme": "http" }))
    // Nothing is recorded as long as the log is locked.
    const waiting = yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT FROM vatproof.logs FOR UPDATE`
        const fibers = [yield* Effect.forkChild(slow), yield* Effect.forkChild(slow)]
        yield* underWay.pipe(
          Effect.repeat({ until: ({ count }) => Number(count) === 2, schedule: Schedule.spaced("2 millis") }),
          Effect.timeout("10 seconds")
        )
        for (const headers of [[], ["expect: 100-continue"]]) {
          const refused = yield* send(port, "GET /v1/status HTTP/1.1", ["x-request-id: mine", ...headers])
          assert.strictEqual(assertProblem(refused, "SERVICE_UNAVAILABLE").request_id, "mine")
          assert.strictEqual(refused.headers["retry-after"], "2")
        }
        return fibers
      })
    )
    for (const fiber of waiting) assert.strictEqual((yield* Fiber.join(fiber)).status, 200)
    assert.strictEqual((yield* send(port, "GET /v1/status HTTP/1.1")).status, 200)
  })
})

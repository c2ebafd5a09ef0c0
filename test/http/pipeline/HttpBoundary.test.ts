import { Effect, Fiber, Metric, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { MaxInFlight } from "#http/pipeline/HttpBoundary.ts"
import * as HttpMetrics from "#http/pipeline/HttpMetrics.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { send } from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u

layer(RunningService.layerShared(RunningService.otherSettings), { excludeTestServices: true })("a response", (it) => {
  const paths = [
    "/health",
    "/v1/status",
    "/v1/validate/ATU12345678",
    "/v1/validate/x",
    "/v1/register",
    "/nothing",
    "/openapi.json",
    "/docs"
  ]

  it.effect.each(paths)(
    "has the X-Request-Id of the request if it is well-formed and contains no secret, otherwise a new one (%s)",
    function* (path) {
      const { port } = yield* RunningService.RunningService
      const idFor = (...headers: ReadonlyArray<string>) =>
        Effect.map(send(port, `GET ${path} HTTP/1.1`, headers), (reply) => {
          // The OpenAPI document contains other request ids in its examples.
          const inBody = path === "/openapi.json" ? undefined : /"request_id":"([^"]*)"/u.exec(reply.text)?.[1]
          assert.strictEqual(inBody ?? reply.headers["x-request-id"], reply.headers["x-request-id"])
          return reply.headers["x-request-id"] ?? ""
        })
      for (const usable of ["a", "A-b_c.9", "0aF9".repeat(16), "x".repeat(128)])
        assert.strictEqual(yield* idFor(`x-request-id: ${usable}`), usable)
      const secrets = ["svc_live_abcdef", "an-svc_audit_abcdef", "eyJhbGciOiJI.eyJzdWIi.c2ln"]
      for (const unusable of ["", "x".repeat(129), "a b", "a,b", "é", "a/b", "<b>", "a:b", ...secrets]) {
        assert.match(yield* idFor(`x-request-id: ${unusable}`), uuidV7)
      }
      assert.match(yield* idFor("x-request-id: a", "x-request-id: b"), uuidV7)
      const made = [yield* idFor(), yield* idFor()]
      for (const id of made) assert.match(id, uuidV7)
      assert.strictEqual(new Set(made).size, 2)
    }
  )

  it.effect("links to larger plans if the API key has used more than 80 % of its quota", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    yield* RunningService.setQuota(key, 10)
    const replies = yield* Effect.forEach(Array.from({ length: 11 }), () => validate("ATU12345678", { key }))
    assert.deepStrictEqual(
      replies.map(({ headers }) => headers["x-service-upgrade"] ?? ""),
      replies.map((_, index) => (index < 8 ? "" : RunningService.otherSettings.UPGRADE_URL))
    )
  })

  it.effect.each([
    ["GET", "/health", 200],
    ["GET", "/v1/status", 200],
    ["GET", "/docs", 200],
    ["GET", "/openapi.json", 200],
    ["GET", "/nothing", 404],
    ["GET", "/v1/validate", 404],
    ["DELETE", "/health", 405],
    ["HEAD", "/v1/validate/ATU12345678", 405],
    ["POST", "/v1/register", 400],
    ["POST", "/v1/auth/login", 400],
    ["GET", "/v1/auth/api-keys", 401],
    ["GET", "/v1/audit/events", 401]
  ] as const)(
    "to %s %s with a valid API key shows the key's usage, and the request is not counted",
    function* ([method, path, status]) {
      const { ask, get, newKey, validate } = yield* RunningService.RunningService
      const key = yield* newKey
      yield* RunningService.setQuota(key, 1)
      yield* validate("ATU12345678", { key })
      const reply = yield* ask(path, { method, key })
      assert.containSubset(reply, { status, headers: { "x-service-usage": "1/1" } })
      assert.isDefined(reply.headers["x-service-upgrade"])
      assert.isUndefined(reply.headers["ratelimit"])
      assert.strictEqual((yield* get("/v1/usage", { key })).headers["x-service-usage"], "1/1")
      for (const wrong of [`${key}x`, "", "svc_live_x"]) {
        assert.isUndefined((yield* ask(path, { method, key: wrong })).headers["x-service-usage"])
      }
    }
  )

  it.effect("omits the key's usage if the database does not answer in time", function* () {
    const { get, newKey, validate } = yield* RunningService.RunningService
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    yield* validate("ATU12345678", { key })
    const reply = yield* sql.withTransaction(
      Effect.andThen(sql`LOCK TABLE vatproof.api_keys IN ACCESS EXCLUSIVE MODE`, get("/health", { key }))
    )
    assert.strictEqual(reply.status, 200)
    assert.isUndefined(reply.headers["x-service-usage"])
    assert.isDefined((yield* get("/health", { key })).headers["x-service-usage"])
  })

  it.effect("has no usage headers if the request has no API key and the endpoint does not identify callers", function* () {
    const { get } = yield* RunningService.RunningService
    for (const path of ["/health", "/v1/status", "/nothing"]) {
      const { headers } = yield* get(path)
      for (const name of ["x-service-usage", "x-service-upgrade", "ratelimit"]) assert.isUndefined(headers[name])
    }
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })(
  "requests beyond the maximum of requests in flight",
  (it) => {
    it.effect("are rejected at once until requests in flight complete", function* () {
      const { newKey, port, validate } = yield* RunningService.start().pipe(Effect.provideService(MaxInFlight, 2))
      const sql = yield* SqlClient.SqlClient
      const key = yield* newKey
      const slow = validate("ATU12345678", { key, query: { force_live: "1" } })
      const underWay = Metric.value(HttpMetrics.activeRequests({ "http.request.method": "GET", "url.scheme": "http" }))
      // While the log is locked, requests stay in flight.
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
  }
)

import { Clock, Effect, Metric, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import * as HttpMetrics from "#http/pipeline/HttpMetrics.ts"
import * as RawHttp from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const withoutTheRequest = (text: string) => text.replace(/,"request_id":.*$/u, "")
const fromCache = /"source":"cache".*"cache":true/u

layer(RunningService.layerShared(), { excludeTestServices: true })("a repeated validation of a VAT ID", (it) => {
  it.effect("has the same body and headers for every spelling of the VAT ID and for force_live=false", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    yield* validate("ATU12345678", { key })
    const second = yield* validate("ATU12345678", { key, query: { force_live: "false" } })
    const third = yield* validate("at-u12345678", { key })
    assert.match(second.text, fromCache)
    assert.strictEqual(withoutTheRequest(third.text), withoutTheRequest(second.text))
    assert.deepStrictEqual(Object.keys(third.headers).toSorted(), Object.keys(second.headers).toSorted())
    assert.strictEqual(third.headers["content-type"], second.headers["content-type"])
    assert.strictEqual(third.headers["content-length"], String(Buffer.byteLength(third.text)))
    assert.strictEqual(third.headers["x-service-usage"], "3/100000")
  })

  it.effect("reports the time at which its request arrived, even if the database is slow", function* () {
    const { newKey, port, validate } = yield* RunningService.RunningService
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    for (const _ of [1, 2]) yield* validate("ATU12345678", { key })
    const client = yield* RawHttp.open(port)
    const waiting = yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT FROM vatproof.logs FOR UPDATE`
        yield* client.send(`GET /v1/validate/ATU12345678 HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`)
        yield* sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`.pipe(
          Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("2 millis") }),
          Effect.timeout("10 seconds")
        )
        return yield* Clock.currentTimeMillis
      })
    )
    const reply = RawHttp.readReply(yield* client.until((text) => text.endsWith("}")))
    const requestedAt = /"requested_at":"([^"]+)"/u.exec(reply.text)?.[1] ?? ""
    assert.isAtMost(Date.parse(requestedAt), waiting)
  })

  it.effect("ends when its client disconnects, even if its API key was revoked meanwhile", function* () {
    const { newKey, port, validate } = yield* RunningService.RunningService
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    for (const _ of [1, 2]) yield* validate("ATU12345678", { key })
    const underWay = Metric.value(HttpMetrics.activeRequests({ "http.request.method": "GET", "url.scheme": "http" }))
    const untilUnderWay = (count: number) =>
      underWay.pipe(
        Effect.repeat({ until: (state) => Number(state.count) === count, schedule: Schedule.spaced("2 millis") }),
        Effect.timeout("10 seconds")
      )
    yield* untilUnderWay(0)
    const client = yield* RawHttp.open(port)
    // While the log is locked, the request stays in flight.
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT FROM vatproof.logs FOR UPDATE`
        yield* client.send(`GET /v1/validate/ATU12345678 HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`)
        yield* untilUnderWay(1)
        yield* client.leave
        yield* sql`UPDATE vatproof.api_keys SET revoked_at = now() WHERE key_sha256 = sha256(${key}::text::bytea)`
      })
    )
    yield* untilUnderWay(0)
  })

  it.effect("returns a newer answer that another replica has stored", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const other = yield* RunningService.make()
    const key = yield* newKey
    yield* validate("BE0123456789", { key })
    const before = yield* validate("BE0123456789", { key })
    yield* other.validate("BE0123456789", { key, query: { force_live: "true" } })
    const after = yield* validate("BE0123456789", { key })
    assert.match(after.text, fromCache)
    assert.notStrictEqual(withoutTheRequest(after.text), withoutTheRequest(before.text))
  })

  it.effect(
    "is charged exactly once per request on every replica, even while the plan of another account changes repeatedly",
    function* () {
      const replicas = [yield* RunningService.make(), yield* RunningService.make()] as const
      const [key, other] = [yield* replicas[0].newKey, yield* replicas[0].newKey]
      yield* Effect.forEach(replicas, ({ validate }) => validate("ATU12345678", { key }))
      const calls = Array.from({ length: 40 }, (_, index) => replicas[index % 2 === 0 ? 0 : 1].validate("ATU12345678", { key }))
      const changes = Effect.forEach(["business", "starter", "business", "free"] as const, (plan) =>
        RunningService.setPlan(other, plan)
      )
      const [replies] = yield* Effect.all([Effect.all(calls, { concurrency: 4 }), changes], { concurrency: "unbounded" })
      assert.deepStrictEqual([...new Set(replies.map(({ status }) => status))], [200])
      const used = replies.map(({ headers }) => Number(headers["x-service-usage"]?.split("/")[0]))
      assert.deepStrictEqual(
        used.toSorted((a, b) => a - b),
        replies.map((_, index) => index + 3)
      )
    }
  )
})

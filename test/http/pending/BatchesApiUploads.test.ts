import { assert, layer } from "#test/support/Test.ts"
import { Effect, Fiber, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as People from "#test/support/People.ts"
import * as RawHttp from "#test/support/RawHttp.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as Rows from "#test/support/Rows.ts"

const path = "/v1/batches"
const items = [{ custom_id: "a", vat_id: "ATU10550001" }]

const uploads = Effect.gen(function* () {
  return Number((yield* Rows.one({ count: Schema.BigInt }, (sql) => sql`SELECT count(*) AS count FROM vatproof.uploads`)).count)
})

/** Waits until the number of spooled chunks is `expected`. */
const untilSpooled = (expected: number) =>
  Effect.repeat(uploads, { schedule: Schedule.spaced("20 millis"), until: (count) => count === expected })

/** Opens a connection and sends the beginning of an upload: one chunk and a part of the next. */
const beginUpload = Effect.fnUntraced(function* (key: string, ...headers: ReadonlyArray<string>) {
  const { baseUrl } = yield* RunningService.RunningService
  const connection = yield* RawHttp.open(Number(new URL(baseUrl).port))
  const head = [`POST ${path} HTTP/1.1`, "host: x", `x-api-key: ${key}`, "content-type: application/x-ndjson"]
  const lines = Array.from({ length: 600 }, (_, item) => `{"custom_id":"${item}","vat_id":"ATU10550001"}\n`).join("")
  yield* connection.send(`${[...head, "content-length: 100000", ...headers].join("\r\n")}\r\n\r\n${lines}`)
  return connection
})

layer(RunningService.layer(), { excludeTestServices: true })("an upload of a batch", (it) => {
  it.effect("reads at most two uploads of one API key at a time, so that slow uploads do not block other API keys", function* () {
    const { newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Effect.replicateEffect(beginUpload(key), 2)
        yield* untilSpooled(2)
        const further = yield* Effect.replicateEffect(beginUpload(key), 8)
        const rejected = yield* Effect.forEach(further, ({ until }) => until((text) => text.includes('"error"')))
        for (const text of rejected) assertProblem(RawHttp.readReply(text), "RATE_LIMIT_EXCEEDED")
        assert.strictEqual((yield* post(path, { items }, { key: yield* newKey })).status, 202)
      })
    )
    yield* untilSpooled(0)
  })

  it.effect("is refused as unavailable, not as one too many, while the database stalls", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const sql = yield* SqlClient.SqlClient
    const waiting = sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()
      AND query LIKE 'INSERT INTO vatproof.uploads%'`
    const upload = service.post(path, { items }, { key })
    const accepted = yield* MigratedDatabase.whileLocked(
      "LOCK TABLE vatproof.uploads IN SHARE MODE",
      Effect.gen(function* () {
        const inProgress = yield* Effect.forkChild(Effect.all([upload, upload], { concurrency: 2 }))
        yield* Effect.repeat(waiting, { schedule: Schedule.spaced("5 millis"), until: (rows) => rows.length === 2 })
        assertProblem(yield* upload, "RATE_LIMIT_EXCEEDED")
        yield* service.travel("2 seconds")
        const refused = yield* upload
        assertProblem(refused, "SERVICE_UNAVAILABLE")
        assert.isAtLeast(Number(refused.headers["retry-after"]), 1)
        return inProgress
      })
    ).pipe(Effect.flatMap(Fiber.join))
    assert.deepStrictEqual(
      accepted.map(({ status }) => status),
      [202, 202]
    )
    // The stall is remembered for 5 s.
    yield* service.travel("10 seconds")
  })

  it.effect("is refused before its chunks are deleted, so that a stalled database does not delay the refusal", function* () {
    const { newKey } = yield* RunningService.RunningService
    yield* untilSpooled(0)
    const { send, until } = yield* beginUpload(yield* newKey)
    yield* untilSpooled(1)
    const refusal = Effect.andThen(
      send("no item\n".repeat(2_000)),
      until((text) => text.includes('"error"'))
    )
    const text = yield* MigratedDatabase.whileLocked(
      "LOCK TABLE vatproof.uploads IN SHARE MODE",
      Effect.timeout(refusal, "4 seconds")
    )
    assertProblem(RawHttp.readReply(text), "VALIDATION_ERROR")
    yield* untilSpooled(0)
  })

  it.effect(
    "bounds the concurrent uploads of an account, of a client address and of a replica, and names the bound",
    function* () {
      const service = yield* RunningService.RunningService
      const { token } = yield* People.newUser(service)
      const ofAccount = yield* Effect.replicateEffect(
        Effect.map(People.issueKey(service, token), ({ key }) => key),
        3
      )
      const others = yield* Effect.replicateEffect(service.newKey, 7)
      const [first, second, third, ...rest] = [...ofAccount, ...others]
      yield* Effect.scoped(
        Effect.gen(function* () {
          let running = 0
          const from = (address: string) => `x-forwarded-for: ${address}`
          const begin = Effect.fnUntraced(function* (address: string, keys: ReadonlyArray<string | undefined>) {
            const uploads = keys.flatMap((key = "") => [key, key])
            yield* Effect.forEach(uploads, (key) => beginUpload(key, from(address)), { concurrency: "unbounded" })
            running += 2 * keys.length
            yield* untilSpooled(running)
          })
          const refusalOf = Effect.fnUntraced(function* (address: string, key: string | undefined) {
            const { until } = yield* beginUpload(key ?? "", from(address))
            return RawHttp.readReply(yield* until((text) => text.includes('"error"')))
          })
          yield* begin("203.0.113.1", [first, second])
          assert.match(
            (yield* refusalOf("203.0.113.9", third)).text,
            /RATE_LIMIT_EXCEEDED.*An account may have at most 4 uploads/u
          )
          yield* begin("203.0.113.1", rest.slice(0, 2))
          assert.match(
            (yield* refusalOf("203.0.113.1", rest[6])).text,
            /RATE_LIMIT_EXCEEDED.*A client address .* at most 8 uploads/u
          )
          yield* begin("203.0.113.2", rest.slice(2, 6))
          assert.match(
            (yield* refusalOf("203.0.113.3", rest[6])).text,
            /SERVICE_UNAVAILABLE.*The server reads 16 uploads, its maximum/u
          )
        })
      )
      yield* untilSpooled(0)
    }
  )

  it.effect("rejects a request with the Idempotency-Key of a running upload, and discards an interrupted upload", function* () {
    const { newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    const headers = { "idempotency-key": "cut off" }
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* beginUpload(key, "idempotency-key: cut off")
        yield* untilSpooled(1)
        assertProblem(yield* post(path, { items }, { key, headers }), "IDEMPOTENCY_IN_PROGRESS")
      })
    )
    yield* untilSpooled(0)
    const again = yield* Effect.repeat(post(path, { items }, { key, headers }), {
      schedule: Schedule.spaced("20 millis"),
      until: ({ status }) => status !== 409
    })
    assert.deepStrictEqual([again.status, again.headers["idempotent-replayed"]], [202, undefined])
  })
})

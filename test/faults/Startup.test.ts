/** A service that cannot start logs the reason in one line without a secret, and does not hang. */
import { Cause, Clock, Effect, Exit, Fiber, Redacted, Schedule, Schema } from "effect"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as Network from "#test/support/Network.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as TcpServer from "#test/support/TcpServer.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

/** Starts a service that must fail, and returns its log lines. */
const startLog = Effect.fnUntraced(function* (settings: RunningService.Settings) {
  const exit = yield* Effect.exit(RunningService.spawn(settings))
  if (Exit.isSuccess(exit)) return assert.fail("The service started")
  const [, output = ""] = String(Cause.squash(exit.cause)).split("The service ended: ")
  return Effect.forEach(output.trim().split("\n"), (line) =>
    Effect.map(decodeLine(line), ({ level, message }) => `${level}: ${message}`)
  )
}, Effect.flatten)

/** Starts a service that must fail, and returns the message of the error. */
const reasonOf = (settings: RunningService.Settings) =>
  Effect.map(Effect.flip(RunningService.start(settings)), ({ message }) => message)

const decodeLine = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ level: Schema.String, message: Schema.String }))
)

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a service that cannot start", (it) => {
  it.effect("reports an invalid setting in one line", function* () {
    const [line, ...more] = yield* startLog({ PORT: "eighty" })
    assert.match(line ?? "", /^fatal: PORT: /u)
    assert.deepStrictEqual(more, [])
  })

  it.effect("reports an invalid NOTARY_KEY before it uses the database", function* () {
    const lines = yield* startLog({
      DATABASE_URL: "postgresql://vatproof:keep-secret@127.0.0.1:9/vatproof",
      DATABASE_WAIT: "0s",
      NOTARY_KEY: "PRIVATE+KEY+cut+off"
    })
    assert.strictEqual(lines.length, 1)
    assert.match(lines[0] ?? "", /^fatal: NOTARY_KEY: A signing key is /u)
  })

  it.effect.each([
    ["does not know the role", { username: "absent-role", password: "keep-secret" }, /cannot be used: .*absent-role/u],
    ["does not have the database", { pathname: "/nowhere" }, /cannot be used: .*"nowhere"/u]
  ] as const)("reports at once that the Postgres server %s", function* ([, parts, expected]) {
    const { url } = yield* TestDatabase
    const changed = Object.assign(new URL(Redacted.value(url)), parts)
    // The test would time out if the service waited.
    const reason = yield* reasonOf({ DATABASE_URL: changed.href, DATABASE_WAIT: "1h" })
    assert.match(reason, expected)
    assert.notInclude(reason, "keep-secret")
  })

  it.effect("waits for its database until the timeout, and logs the wait and the reason", function* () {
    const before = yield* Clock.currentTimeMillis
    const [waiting, end, ...more] = yield* startLog({
      DATABASE_URL: "postgresql://vatproof:keep-secret@127.0.0.1:9/vatproof",
      DATABASE_WAIT: "1500ms"
    })
    assert.isAtLeast((yield* Clock.currentTimeMillis) - before, 1_500)
    assert.match(waiting ?? "", /The database is not available yet; waiting for 1s 500ms: connect ECONNREFUSED 127.0.0.1:9/u)
    assert.strictEqual(end, "fatal: The database cannot be used: connect ECONNREFUSED 127.0.0.1:9")
    assert.deepStrictEqual(more, [])
    assert.notInclude(`${waiting} ${end}`, "keep-secret")
  })

  it.effect("reports at once that its database lacks the required TLS", function* () {
    const { url } = yield* TestDatabase
    const withTls = new URL(Redacted.value(url))
    withTls.searchParams.set("sslmode", "require")
    const reason = yield* reasonOf({ DATABASE_URL: withTls.href, DATABASE_WAIT: "1h" })
    assert.strictEqual(reason, "The database cannot be used: The server does not support TLS")
  })

  it.effect("reports that its port is in use", function* () {
    const port = yield* RunningService.freePort
    yield* TcpServer.make((socket) => socket.destroy(), { port })
    assert.include(yield* reasonOf({ PORT: String(port) }), String(port))
  })
})

layer(RunningService.layerGround, { excludeTestServices: true })("a service of an older version", (it) => {
  it.effect("reports at once that a newer version has migrated the database", function* () {
    yield* MigratedDatabase.execute("INSERT INTO vatproof_migrations (name, sha256) VALUES ('9999_move_everything', '')")
    assert.match(yield* reasonOf({ DATABASE_WAIT: "1h" }), /^The database is newer than this version/u)
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a service that starts before its database", (it) => {
  it.effect("is ready as soon as the database is available", function* () {
    const network = yield* Network.make(Redacted.value((yield* TestDatabase).url))
    yield* network.reset
    const starting = yield* Effect.forkScoped(RunningService.start({ DATABASE_URL: network.url }), { startImmediately: true })
    yield* Effect.repeat(network.attempts, { schedule: Schedule.spaced("10 millis"), until: (count) => count > 0 })
    yield* network.restore
    const service = yield* Fiber.join(starting)
    assert.strictEqual((yield* service.validate("ATU12345678")).status, 200)
  })
})

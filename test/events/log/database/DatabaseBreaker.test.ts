/** Tests an outage of the database: requests fail within the timeout, later at once, and the service detects the recovery. */
import { Clock, Context, Effect, Fiber, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { asAdministrator, execute } from "#test/support/MigratedDatabase.ts"
import * as Network from "#test/support/Network.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"

const timed = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const started = yield* Clock.currentTimeMillis
  const value = yield* effect
  return { value, ms: (yield* Clock.currentTimeMillis) - started }
})

/** A service whose connections to its database the test can cut or block. */
class ServiceBehindProxy extends Context.Service<ServiceBehindProxy, Effect.Success<typeof startBehindProxy>>()(
  "vatproof/test/ServiceBehindProxy"
) {}

const startBehindProxy = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const network = yield* Network.make(Redacted.value(url))
  const service = yield* RunningService.start({ DATABASE_URL: network.url })
  return { network, service, key: yield* service.newKey }
})

const testLayer = Layer.effect(ServiceBehindProxy, startBehindProxy).pipe(Layer.provideMerge(RunningService.layerGround))

layer(testLayer, { excludeTestServices: true })("a service whose database is unavailable", (it) => {
  it.effect.each([["cut"], ["block"]] as const)(
    "rejects requests within the timeout, then at once, and recovers by itself (network behaviour: %s)",
    function* ([outage]) {
      const { key, network, service } = yield* ServiceBehindProxy
      assert.strictEqual((yield* service.validate("SK1234567890", { key })).status, 200)
      yield* network[outage]
      const many = Effect.all(
        Array.from({ length: 40 }, (_, index) => service.validate("SK1234567890", index % 2 === 0 ? { key } : {})),
        { concurrency: "unbounded" }
      )
      const first = yield* timed(many)
      for (const reply of first.value) assertProblem(reply, "SERVICE_UNAVAILABLE")
      assert.isBelow(first.ms, 8_000)
      const later = yield* Effect.repeat(timed(many), { until: ({ ms }) => ms < 1_500 })
      for (const reply of later.value) {
        assertProblem(reply, "SERVICE_UNAVAILABLE")
        assert.match(reply.headers["retry-after"] ?? "", /^\d+$/u)
      }
      assert.strictEqual((yield* service.get("/health")).status, 200)
      yield* network.restore
      const back = yield* timed(
        Effect.repeat(service.validate("SK1234567890", { key }), {
          schedule: Schedule.spaced("50 millis"),
          until: ({ status }) => status === 200
        })
      )
      assert.isBelow(back.ms, 4_000)
    }
  )

  it.effect(
    "rejects validations while the database is read-only, like a standby, and accepts validations again afterwards",
    function* () {
      const { key, service } = yield* ServiceBehindProxy
      const { name } = yield* TestDatabase
      const readWrite = (statement: string) =>
        asAdministrator(
          Effect.flatMap(SqlClient.SqlClient, (sql) =>
            Effect.andThen(sql.unsafe("SET TRANSACTION READ WRITE").unprepared, sql.unsafe(statement).unprepared).pipe(
              sql.withTransaction
            )
          )
        )
      const reconnect = execute(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND pid <> pg_backend_pid()`
      )
      yield* readWrite(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      yield* reconnect
      const refused = yield* service.validate("SK1234567890", { key })
      assertProblem(refused, "SERVICE_UNAVAILABLE")
      assert.match(refused.headers["retry-after"] ?? "", /^\d+$/u)
      yield* readWrite(`ALTER DATABASE ${name} RESET default_transaction_read_only`)
      yield* reconnect
      yield* Effect.repeat(service.validate("SK1234567890", { key }), {
        schedule: Schedule.spaced("50 millis"),
        until: ({ status }) => status === 200
      })
    }
  )

  it.effect("answers a request after a short outage of the database instead of rejecting the request", function* () {
    const { key, network, service } = yield* ServiceBehindProxy
    yield* network.reset
    const asked = yield* Effect.forkScoped(service.validate("SI12345678", { key }))
    yield* Effect.repeat(network.attempts, { schedule: Schedule.spaced("10 millis"), until: (count) => count >= 2 })
    yield* network.restore
    const reply = yield* Fiber.join(asked)
    assert.strictEqual(reply.status, 200)
  })
})

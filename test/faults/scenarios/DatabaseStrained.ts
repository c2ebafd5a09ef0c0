/** Postgres runs with a fault: disk full or slow, no connections left, read-only, or the log locked by another session. */
import { Array as Arr, Effect, Fiber, FileSystem, Record, Redacted, Schedule } from "effect"
import { ChildProcess } from "effect/process"
import { SqlClient } from "effect/sql"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as Needs from "#test/faults/Needs.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"

/** Maximum duration of a rejected request in milliseconds. Most of it is the timeout of 5 s of an append that hangs. */
const rejectionMs = 6_500

/** Returns a function that runs statements one after the other and returns their output. */
const psqlOn =
  (server: PostgresServer.PostgresServer) =>
  (...statements: ReadonlyArray<string>) =>
    server.program("psql", "-qAt", ...statements.flatMap((statement) => ["-c", statement]))

/** Another program fills the 320 MB disk of the database for 15 s. */
export const diskFull = Effect.gen(function* () {
  yield* Needs.requireRoot("to mount a small disk")
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-disk-" })
  const mounted = Needs.requireCommand("the right to mount a tmpfs", "mount", "-t", "tmpfs", "-o", "size=320m", "tmpfs", folder)
  yield* Effect.acquireRelease(mounted, () => Effect.ignore(Needs.asRoot("umount", folder)))
  const server = yield* PostgresServer.make({ folder, settings: ["max_wal_size=64MB", "min_wal_size=32MB"] })
  const replica = yield* Scenario.replica(server.url)
  const ballast = `${folder}/ballast`
  const report = yield* Scenario.run({
    name: "full",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: Effect.gen(function* () {
      yield* Effect.ignore(Needs.asRoot("dd", "if=/dev/zero", `of=${ballast}`, "bs=64k"))
      yield* Effect.delay(fs.remove(ballast), "15 seconds")
      // Postgres stops if it cannot write its write-ahead log; the operator then starts it again.
      const hadStopped = yield* Effect.match(server.start, { onSuccess: () => true, onFailure: () => false })
      return [hadStopped ? "Postgres stopped and was started again" : "Postgres stayed up"]
    })
  })
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report)
  )
})

/** Every write to the disk takes 300 ms longer, for 15 s. */
export const diskSlow = Effect.gen(function* () {
  yield* Needs.requireRoot("to slow down the processes of the server")
  yield* Needs.requireCommand("strace (apt install strace)", "strace", "-V")
  const server = yield* PostgresServer.make()
  const [main = ""] = yield* server.processes
  // `timeout` exits with 124 if strace was still running after a second, so tracing works.
  const tracing = `timeout 1 strace -qq -o /dev/null -e trace=none -p ${main}; test $? -eq 124`
  yield* Needs.requireCommand("the right to trace processes", "sh", "-c", tracing)
  const replica = yield* Scenario.replica(server.url)
  const slowed = Effect.gen(function* () {
    const pids = yield* server.processes
    yield* ChildProcess.make(
      "strace",
      [
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fdatasync,fsync",
        "-e",
        "inject=fdatasync,fsync:delay_exit=300ms",
        ...pids.flatMap((pid) => ["-p", pid])
      ],
      { stdin: "ignore", stdout: "ignore", stderr: "ignore" }
    )
    yield* Effect.delay(Effect.void, "15 seconds")
    return []
  })
  const report = yield* Scenario.run({
    name: "slow",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    perSecond: 40,
    fault: Effect.scoped(slowed)
  })
  const durations = report.outcomes.filter(({ phase }) => phase === "fault").map(({ durationMs }) => durationMs)
  const median = durations.toSorted((a, b) => a - b)[Math.floor(durations.length / 2)] ?? 0
  return Scenario.withClaims(report, Scenario.succeededOrRejected(report), Scenario.rejectedWithin(report, rejectionMs), {
    statement: `the fault had an effect: half of the requests took ${median} ms or more`,
    holds: median >= 300
  })
})

/** Postgres rejects new connections of the service for 15 s and closes the existing ones. */
export const connectionsTaken = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const psql = psqlOn(server)
  // As in production, a superuser migrates and the service has a role of its own.
  yield* psql("CREATE ROLE vatproof_service NOLOGIN", "CREATE ROLE login LOGIN IN ROLE vatproof_service")
  yield* Scenario.migrate(server.url)
  const replica = yield* Scenario.replica(Redacted.make(Redacted.value(server.url).replace("postgres@", "login@")))
  const report = yield* Scenario.run({
    name: "taken",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: psql(
      "ALTER ROLE login CONNECTION LIMIT 0",
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'login'"
    ).pipe(Effect.andThen(Effect.delay(psql("ALTER ROLE login CONNECTION LIMIT -1"), "15 seconds")), Effect.as([]))
  })
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report)
  )
})

/** The connections of the service are ended every 150 ms for 15 s. */
export const connectionsEnded = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const replica = yield* Scenario.replica(server.url)
  const end = psqlOn(server)("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'vatproof'")
  const report = yield* Scenario.run({
    name: "ended",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: Effect.repeat(end, Schedule.fixed("150 millis")).pipe(Effect.timeoutOption("15 seconds"), Effect.as([]))
  })
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report)
  )
})

/** Postgres is read-only for 15 s, like a standby that is not promoted yet. */
export const readOnly = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const replica = yield* Scenario.replica(server.url)
  const psql = psqlOn(server)
  const reconnect = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'vatproof'"
  const report = yield* Scenario.run({
    name: "read-only",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: psql("ALTER DATABASE postgres SET default_transaction_read_only = on", reconnect).pipe(
      Effect.andThen(
        Effect.delay(
          psql(
            "SET default_transaction_read_only = off",
            "ALTER DATABASE postgres RESET default_transaction_read_only",
            reconnect
          ),
          "15 seconds"
        )
      ),
      Effect.as([])
    )
  })
  const unsigned = Number(
    yield* psql("SELECT l.next_position - max(c.size) FROM vatproof.logs l, vatproof.checkpoints c GROUP BY l.next_position")
  )
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report),
    { statement: `the notary continues: ${unsigned} events are not signed yet`, holds: unsigned < 400 }
  )
})

/** Size of a replica's connection pool. */
const poolSize = 10

/** Concurrent registrations, more than the pool has connections. */
const signUps = 40

/** Another session locks the row of the log for 20 s. Transactions that wait for the lock occupy the whole connection pool. */
export const poolExhausted = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const replica = yield* Scenario.replica(server.url)
  const waiting = Effect.map(
    psqlOn(server)("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'vatproof' AND wait_event_type = 'Lock'"),
    Number
  )
  const signUp = Effect.map(replica.post("/v1/register", { agent_id: "one of many" }), ({ status }) => status)
  const seen = { waiting: 0, signUps: new Array<number>() }
  const locked = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const signingUp = yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT next_position FROM vatproof.logs WHERE log_id = 0 FOR UPDATE`
        const fiber = yield* Effect.forkScoped(
          Effect.all(
            Array.from({ length: signUps }, () => signUp),
            { concurrency: "unbounded" }
          )
        )
        seen.waiting = yield* Effect.delay(waiting, "3 seconds")
        yield* Effect.delay(Effect.void, "17 seconds")
        return fiber
      })
    )
    seen.signUps = yield* Fiber.join(signingUp)
    const kinds = Record.map(
      Arr.groupBy(seen.signUps, (status) => String(status)),
      (all) => all.length
    )
    return [`${signUps} concurrent registrations returned ${JSON.stringify(kinds)}`]
  }).pipe(Effect.provide(Postgres.layerAdministrator({ url: server.url, maxConnections: 1 }), { local: true }))
  const report = yield* Scenario.run({
    name: "exhausted",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: Effect.scoped(locked)
  })
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report),
    {
      statement: `${seen.waiting} of the replica's ${poolSize} connections waited for the lock`,
      holds: seen.waiting === poolSize
    },
    {
      statement: "every registration returns 201 or 503",
      holds: seen.signUps.every((status) => status === 201 || status === 503)
    }
  )
})

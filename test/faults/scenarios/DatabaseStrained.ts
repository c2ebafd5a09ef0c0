/** Postgres is there and cannot: its disk is full or slow, its connections are taken, its log is locked by somebody else. */
import { Effect, FileSystem, Option, Redacted } from "effect"
import { ChildProcess } from "effect/process"
import { SqlClient } from "effect/sql"
import { run } from "#infra/EmbeddedPostgresProgram.ts"
import * as Postgres from "#infra/Postgres.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"

/** The longest wait for a batch, or the longest batch. */
const refusalMs = 6_500

const asRoot = (name: string, ...args: ReadonlyArray<string>) => run(`/usr/bin/${name}`, args, { cwd: "/", user: Option.none() })

/** A database on a disk of 320 MB, which something else fills to the last byte for 15 s. */
export const diskFull = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-disk-" })
  yield* Effect.acquireRelease(asRoot("mount", "-t", "tmpfs", "-o", "size=320m", "tmpfs", folder), () =>
    Effect.ignore(asRoot("umount", folder))
  )
  const server = yield* PostgresServer.make({ folder, settings: ["max_wal_size=64MB", "min_wal_size=32MB"] })
  const replica = yield* Scenario.replica(server.url)
  const ballast = `${folder}/ballast`
  const report = yield* Scenario.run({
    name: "full",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: Effect.gen(function* () {
      yield* Effect.ignore(asRoot("dd", "if=/dev/zero", `of=${ballast}`, "bs=64k"))
      yield* Effect.delay(fs.remove(ballast), "15 seconds")
      // A server that could not write its log of writes has ended, as it should: an operator starts it again.
      const wentDown = yield* Effect.match(server.start, { onSuccess: () => true, onFailure: () => false })
      return [wentDown ? "Postgres ended itself and was started again" : "Postgres stayed up"]
    })
  })
  return Scenario.withClaims(report, Scenario.onlyRefused(report), Scenario.refusedWithin(report, refusalMs))
})

/** Every write that has to reach the disk takes 300 ms longer, for 15 s. */
export const diskSlow = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const replica = yield* Scenario.replica(server.url)
  const slowed = Effect.gen(function* () {
    const pids = yield* asRoot("pgrep", "-f", `postgres.*${server.folder}`)
    const children = yield* Effect.forEach(pids.trim().split("\n"), (pid) =>
      Effect.orElseSucceed(asRoot("pgrep", "-P", pid), () => "")
    )
    const all = [...pids.trim().split("\n"), ...children.flatMap((text) => text.trim().split("\n"))].filter((pid) => pid !== "")
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
        ...all.flatMap((pid) => ["-p", pid])
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
  return Scenario.withClaims(report, Scenario.allAnswered(report))
})

/** Postgres has no connection left for the service, and has ended those it had, for 15 s. */
export const connectionsTaken = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const psql = (...statements: ReadonlyArray<string>) =>
    server.program("psql", "-q", ...statements.flatMap((statement) => ["-c", statement]))
  // As in production: what migrates is a superuser, and what serves may have what is left for everybody.
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
  return Scenario.withClaims(report, Scenario.onlyRefused(report), Scenario.refusedWithin(report, refusalMs))
})

/** More than the service has connections. */
const signUps = 40

/** Somebody's transaction holds the row of the log for 20 s, and transactions that wait for it take all connections of the pool. */
export const poolExhausted = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const replica = yield* Scenario.replica(server.url)
  const locked = Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`SELECT next_position FROM vatproof.logs WHERE log_id = 0 FOR UPDATE`
        for (const _ of Array.from({ length: signUps })) yield* Effect.forkScoped(Effect.ignore(replica.newKey))
        yield* Effect.delay(Effect.void, "20 seconds")
      })
    )
    return []
  }).pipe(Effect.provide(Postgres.layerAdministrator({ url: server.url, maxConnections: 1 }), { local: true }))
  const report = yield* Scenario.run({
    name: "exhausted",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: Effect.scoped(locked)
  })
  return Scenario.withClaims(report, Scenario.onlyRefused(report), Scenario.refusedWithin(report, refusalMs))
})

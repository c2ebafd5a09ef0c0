/** Processes that share one port: one is killed, then all are replaced in turn, then all stop. */
import { Effect, Option, Schedule } from "effect"
import { run } from "#infra/EmbeddedPostgresProgram.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"

const childrenOf = (pid: number) =>
  run("/usr/bin/pgrep", ["-P", String(pid), "-x", "node|MainThread"], { cwd: "/", user: Option.none() }).pipe(
    Effect.map((text) =>
      text
        .split("\n")
        .map(Number)
        .filter((child) => child > 0)
    )
  )

const settings = { SHUTDOWN_DELAY: "500ms" }

/** Replaced with SIGUSR2, one after the other: nobody notices. */
export const renewed = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const service = yield* Scenario.replica(server.url, settings, ["--workers", "2"])
  const former = yield* childrenOf(service.pid)
  const areNew = childrenOf(service.pid).pipe(
    Effect.map((now) => now.length === former.length && now.every((pid) => !former.includes(pid)))
  )
  const report = yield* Scenario.run({
    name: "renewed",
    baseUrl: service.baseUrl,
    key: yield* service.newKey,
    database: () => server.url,
    fault: Effect.sync(() => process.kill(service.pid, "SIGUSR2")).pipe(
      Effect.andThen(Effect.repeat(areNew, { schedule: Schedule.spaced("100 millis"), until: (done) => done })),
      // The last one has to listen before its turn is over.
      Effect.andThen(Effect.delay(Effect.succeed([`${former.length} workers were replaced`]), "4 seconds"))
    )
  })
  return Scenario.withClaims(report, Scenario.allAnswered(report), { what: "there are two workers", holds: former.length === 2 })
})

/** One is killed and another one takes its place. */
export const killed = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const service = yield* Scenario.replica(server.url, settings, ["--workers", "2"])
  const [first, ...others] = yield* childrenOf(service.pid)
  const isBack = childrenOf(service.pid).pipe(Effect.map((now) => now.length === 2 && !now.includes(first ?? 0)))
  const report = yield* Scenario.run({
    name: "worker",
    baseUrl: service.baseUrl,
    key: yield* service.newKey,
    database: () => server.url,
    fault: Effect.sync(() => process.kill(first ?? 0, "SIGKILL")).pipe(
      Effect.andThen(Effect.repeat(isBack, { schedule: Schedule.spaced("100 millis"), until: (done) => done })),
      Effect.as([])
    )
  })
  yield* service.signal("SIGTERM")
  const code = yield* service.ended
  const refused = report.outcomes.filter(({ status }) => status !== null && status !== 200)
  return Scenario.withClaims(
    report,
    { what: "a response, if there is one, is a 200", holds: refused.length === 0 },
    { what: `SIGTERM ends all of them, with code ${code}`, holds: code === 0 && others.length === 1 }
  )
})

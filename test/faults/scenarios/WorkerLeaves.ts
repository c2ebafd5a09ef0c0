/** Worker processes that share one port: rolling replacement, crash of one worker, and stop of all workers. */
import { Effect, Schedule, Schema } from "effect"
import { HttpClient } from "effect/http"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import { freePort } from "#test/support/RunningService.ts"

/** Starts a service with two workers, and waits until the admin port reports both as ready. */
const setUp = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  const adminPort = yield* freePort
  const settings = { ADMIN_PORT: String(adminPort) }
  const service = yield* Scenario.replica(server.url, settings, ["--workers", "2"])
  const http = yield* HttpClient.HttpClient
  const bothReady = http.get(`http://127.0.0.1:${adminPort}/readyz`).pipe(
    Effect.flatMap(({ json }) => json),
    Effect.flatMap(decodeReady),
    Effect.map(({ ready_workers }) => ready_workers.length === 2)
  )
  /** Returns the current process id of each worker. */
  const processes = Effect.map(service.output, (output) => {
    const newest = new Map(
      [...output.matchAll(/Worker (\d+) is process (\d+)/gu)].map(([, worker, pid]) => [worker, Number(pid)])
    )
    return [...newest.values()]
  })
  const until = <E, R>(state: Effect.Effect<boolean, E, R>) =>
    Effect.repeat(state, { schedule: Schedule.spaced("50 millis"), until: (done) => done })
  yield* until(bothReady)
  return { server, service, bothReady: until(bothReady), processes, until }
})

const decodeReady = Schema.decodeUnknownEffect(Schema.Struct({ ready_workers: Schema.Array(Schema.Int) }))

/** SIGUSR2 replaces the workers one after the other. Every request succeeds. */
export const renewed = Effect.gen(function* () {
  const { bothReady, processes, server, service, until } = yield* setUp
  const former = yield* processes
  const areNew = Effect.map(processes, (now) => now.length === 2 && now.every((pid) => !former.includes(pid)))
  const report = yield* Scenario.run({
    name: "renewed",
    baseUrl: service.baseUrl,
    key: yield* service.newKey,
    database: () => server.url,
    perSecond: 300,
    fault: Effect.sync(() => process.kill(service.pid, "SIGUSR2")).pipe(
      Effect.andThen(until(areNew)),
      Effect.andThen(bothReady),
      Effect.as([`${former.length} workers were replaced`])
    )
  })
  return Scenario.withClaims(report, Scenario.allSucceeded(report), {
    statement: "there were two workers",
    holds: former.length === 2
  })
})

/** One worker is killed and replaced. */
export const killed = Effect.gen(function* () {
  const { bothReady, processes, server, service, until } = yield* setUp
  const [first = 0, ...others] = yield* processes
  const isReplaced = Effect.map(processes, (now) => now.length === 2 && !now.includes(first))
  const report = yield* Scenario.run({
    name: "worker",
    baseUrl: service.baseUrl,
    key: yield* service.newKey,
    database: () => server.url,
    fault: Effect.sync(() => process.kill(first, "SIGKILL")).pipe(
      Effect.andThen(until(isReplaced)),
      Effect.andThen(bothReady),
      Effect.as([])
    )
  })
  yield* service.signal("SIGTERM")
  const code = yield* service.ended
  return Scenario.withClaims(report, Scenario.answeredOrLost(report), {
    statement: `SIGTERM stops all workers, with code ${code}`,
    holds: code === 0 && others.length === 1
  })
})

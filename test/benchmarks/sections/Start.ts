/** Time from the start of the service to its first validation, which is cached, on an existing database. */
import { Array as Arr, Clock, Effect, Redacted, Schedule } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Processes from "#test/benchmarks/Processes.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Collector from "#test/benchmarks/servers/Collector.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import { freePort } from "#test/support/RunningService.ts"

const vatId = "ATU10100000"
const startTimeout = "60 seconds"

/** Starts the service, waits for an answer, and stops the service. Returns the time to the answer in milliseconds. */
const startOnce = <E, R>(env: Readonly<Record<string, string>>, ask: Effect.Effect<unknown, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      yield* Processes.start(Processes.service(env))
      yield* ask
      return (yield* Clock.currentTimeMillis) - before
    })
  )

/** Returns the durations of several starts in milliseconds. An unmeasured start creates the database, a key and a cached answer before. */
const starts = Effect.fnUntraced(function* (databaseUrl: string) {
  const { rounds } = yield* BenchOptions
  const http = yield* HttpClient.HttpClient
  const collector = yield* Collector.make
  const port = yield* freePort
  // An empty DATABASE_URL selects the embedded database, even if the environment has a DATABASE_URL.
  const env = { ...(yield* Servers.settings(port, collector.url)), DATABASE_URL: databaseUrl }
  const untilAnswered = <A, E, R>(request: Effect.Effect<A, E, R>) =>
    request.pipe(Effect.retry(Schedule.spaced("5 millis")), Effect.timeout(startTimeout))
  const registered = yield* Effect.scoped(
    Effect.gen(function* () {
      yield* Processes.start(Processes.service(env))
      const base = `http://127.0.0.1:${port}`
      yield* untilAnswered(http.get(`${base}/health`))
      const [key = ""] = yield* Servers.register({ port }, 1)
      const request = HttpClientRequest.get(`${base}/v1/validate/${vatId}`, { headers: { "x-api-key": key } })
      const validated = Effect.filterOrFail(http.execute(request), ({ status }) => status === 200)
      yield* untilAnswered(validated)
      return untilAnswered(validated)
    })
  )
  return yield* Effect.forEach(Arr.range(1, rounds), () => startOnce(env, registered))
})

export const run = Effect.gen(function* () {
  const { rounds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const external = yield* starts(Redacted.value(yield* database("start")))
  const embedded = yield* starts("")
  const report: Report.SectionReport = {
    section: "start",
    how: `from the start of the process to the first answered validation; medians of ${rounds} starts`,
    figures: [
      Report.atMost("with DATABASE_URL", Report.median(external), "ms", 1_500),
      Report.atMost("with the embedded database, including its start", Report.median(embedded), "ms", 3_000)
    ],
    details: [
      `with DATABASE_URL, ms of each start: ${external.join("  ")}`,
      `with the embedded database, ms of each start: ${embedded.join("  ")}`
    ]
  }
  return report
})

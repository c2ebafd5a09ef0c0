/** The measured servers, each in a process of its own: the service with all features on, Fastify, and bare `node:http`. */
import { Array as Arr, Effect, FileSystem, Option, Redacted, Schedule, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import * as Sandbox from "#test/support/Sandbox.ts"
import type { Checkout } from "#test/benchmarks/Checkout.ts"
import * as Collector from "#test/benchmarks/servers/Collector.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Processes from "#test/benchmarks/Processes.ts"
import { freePort } from "#test/support/RunningService.ts"

export class ServerFailed extends Schema.TaggedError<ServerFailed>()("ServerFailed", { message: Schema.String }) {}

/** A running server. `watched` has the ids of its process and, if local, of Postgres, by the names of the report. */
export interface Server {
  readonly port: number
  readonly pid: number
  readonly watched: Readonly<Record<string, number>>
}

/** Limits that are checked but never reached. */
const limits = {
  PLAN_FREE_PER_MONTH: "2000000000",
  PLAN_FREE_PER_MINUTE: "2000000000",
  ANONYMOUS_LIFETIME: "2000000000",
  ANONYMOUS_PER_MINUTE: "2000000000",
  REGISTRATIONS_PER_DAY: "1000000",
  // X-Forwarded-For identifies clients without a key.
  TRUST_PROXY: "1"
}

const notaryKey = "YmVuY2htYXJrcyBzaWduIHdpdGggdGhpcyBvbmUga2U"

const launch = Effect.fnUntraced(function* (options: Processes.ProcessOptions, port: number, path: string) {
  const http = yield* HttpClient.HttpClient
  const running = yield* Processes.start(options)
  const answers = http
    .get(`http://127.0.0.1:${port}${path}`)
    .pipe(Effect.retry(Schedule.spaced("20 millis")), Effect.timeout("60 seconds"))
  const exited = Effect.flatMap(running.ended, (output) =>
    Effect.fail(new ServerFailed({ message: `${options.name}: ${output}` }))
  )
  yield* Effect.raceFirst(answers, exited)
  return running
})

/** Environment of the service: high limits, the sandbox's sources, a notary key, a collector, default sampling. */
export const settings = Effect.fnUntraced(function* (port: number, collectorUrl: string) {
  const fs = yield* FileSystem.FileSystem
  const { bzstBaseUrl, viesBaseUrl } = yield* Sandbox.Sandbox
  return {
    ...limits,
    PORT: String(port),
    ADMIN_PORT: "0",
    DATA_DIR: yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-bench-" }),
    JWT_SECRET: "a secret for the time of a benchmark",
    NOTARY_KEY: notaryKey,
    VIES_BASE_URL: viesBaseUrl,
    BZST_BASE_URL: bzstBaseUrl,
    OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl
  }
})

/** Returns the process ids of the service and, if Postgres runs on this machine, of the postmaster. */
const watchedOf = Effect.fnUntraced(function* (pid: number) {
  const postgres = yield* PostgresServer
  const watched: Record<string, number> = Option.isSome(postgres.pid)
    ? { service: pid, Postgres: postgres.pid.value }
    : { service: pid }
  return watched
})

/** Starts the service of a checkout with all features on. */
export const service = Effect.fnUntraced(function* (url: Redacted.Redacted, checkout?: Checkout) {
  const collector = yield* Collector.make
  const port = yield* freePort
  const env = { ...(yield* settings(port, collector.url)), DATABASE_URL: Redacted.value(url) }
  const { pid } = yield* launch(Processes.service(env, checkout), port, "/health")
  return { port, pid, watched: yield* watchedOf(pid), exports: collector.exports }
})

/** What the baseline stores its events with: an INSERT by `pg`, or the event store Emmett. */
export type BaselineStore = "pg" | "emmett"

/** Starts the baseline (BaselineServer.ts). */
export const baseline = Effect.fnUntraced(function* (
  url: Redacted.Redacted,
  keys: ReadonlyArray<string>,
  store: BaselineStore = "pg"
) {
  const port = yield* freePort
  const { viesBaseUrl } = yield* Sandbox.Sandbox
  const { pid } = yield* launch(
    Processes.program("servers/BaselineServer.ts", [store, Redacted.value(url), String(port), viesBaseUrl, ...keys], {
      NODE_ENV: "production"
    }),
    port,
    "/"
  )
  const server: Server = { port, pid, watched: yield* watchedOf(pid) }
  return server
})

/** Starts a bare `node:http` server that sends the bytes of a response of the service: the upper bound for Node. */
export const bare = Effect.fnUntraced(function* (service: Server, vatId: string, key: string) {
  const http = yield* HttpClient.HttpClient
  const url = `http://127.0.0.1:${service.port}/v1/validate/${vatId}`
  const response = yield* http.execute(HttpClientRequest.get(url, { headers: { "x-api-key": key } }))
  // Node adds these headers itself.
  const { connection: _connection, date: _date, "keep-alive": _keepAlive, ...headers } = response.headers
  const fixed = JSON.stringify({ headers, body: yield* response.text })
  const port = yield* freePort
  const { pid } = yield* launch(Processes.program("servers/BareServer.ts", [String(port), fixed]), port, "/")
  const server: Server = { port, pid, watched: { service: pid } }
  return server
})

const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))

/** Registers keys of free accounts. */
export const register = Effect.fnUntraced(function* ({ port }: Pick<Server, "port">, count: number) {
  const http = yield* HttpClient.HttpClient
  return yield* Effect.forEach(
    Arr.makeBy(count, (index) => index),
    Effect.fnUntraced(function* (index) {
      const request = HttpClientRequest.post(`http://127.0.0.1:${port}/v1/register`)
      const response = yield* http.execute(HttpClientRequest.bodyJsonUnsafe(request, { agent_id: `benchmark ${index}` }))
      return (yield* decodeKey(yield* response.json)).api_key
    })
  )
})

/** Interface of the load generator: plan and result. */
import { Effect, Schema } from "effect"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as Processes from "#test/benchmarks/Processes.ts"

/**
 * The plan of a load. Request k of a kind asks for VAT ID k of `vatIds`. After the last VAT ID the requests start over, and each VAT ID
 * gets another key.
 *
 * Without `perSecond` a connection sends its next request when it has its response (closed loop). With `perSecond` requests are due at that
 * rate, whether or not earlier ones are answered (open loop), and latency counts from the due time. `requests` ends the run after that
 * number of requests.
 */
export const LoadPlan = Schema.Struct({
  port: Schema.Int,
  /** Several kinds are mixed by their weights. */
  kinds: Schema.NonEmptyArray(Schema.Literals(RequestKinds.names)),
  vatIds: Schema.NonEmptyArray(Schema.String),
  keys: Schema.NonEmptyArray(Schema.String),
  /** Index of the first new VAT ID, for live look-ups. */
  newFrom: Schema.Int,
  connections: Schema.Int,
  warmUpMs: Schema.Finite,
  durationMs: Schema.Finite,
  perSecond: Schema.NullOr(Schema.Finite),
  requests: Schema.NullOr(Schema.Int),
  /** Path of the VIES API if the load queries the simulated VIES itself, like the service does; null for a load on a server. */
  viesPath: Schema.NullOr(Schema.String),
  /** Ids of the processes, by name, whose CPU time is measured. The time includes their child processes. */
  watched: Schema.Record(Schema.String, Schema.Int)
})
export type LoadPlan = typeof LoadPlan.Type

const Summary = Schema.Struct({
  answered: Schema.Int,
  /** Latencies are in milliseconds. */
  p50: Schema.Finite,
  p99: Schema.Finite,
  max: Schema.Finite
})
export type Summary = typeof Summary.Type

/** Measurements after the warm-up. A failure is an unexpected response or a closed connection. */
export const LoadResult = Schema.Struct({
  answered: Schema.Int,
  seconds: Schema.Finite,
  failures: Schema.Int,
  firstFailure: Schema.NullOr(Schema.String),
  latencyMs: Summary,
  byKind: Schema.Record(Schema.String, Summary),
  /** One summary per second of the run, by the arrival of the response. */
  bySecond: Schema.Array(Summary),
  /** Open loop: delay between the due time of a request and its write to a socket. */
  latenessMs: Summary,
  /** CPU time per answered request, in microseconds: load generator, watched processes, and all other processes. */
  cpuMicros: Schema.Record(Schema.String, Schema.Finite),
  /** Latency of each request by its number if the plan has `requests`, else empty. */
  eachMs: Schema.Array(Schema.Finite)
})
export type LoadResult = typeof LoadResult.Type

export class LoadFailed extends Schema.TaggedError<LoadFailed>()("LoadFailed", { message: Schema.String }) {}

const encode = Schema.encodeEffect(Schema.fromJsonString(LoadPlan))
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(LoadResult))

/** Runs the load generator in a process of its own. A failed request is counted in the result and does not fail the effect. */
export const attempt = Effect.fnUntraced(function* (plan: LoadPlan) {
  const output = yield* Processes.output("load/LoadGenerator.ts", yield* encode(plan)).pipe(
    Effect.timeout(plan.warmUpMs + plan.durationMs + 60_000)
  )
  return yield* decode(output).pipe(
    Effect.catchTag("SchemaError", () => Effect.fail(new LoadFailed({ message: `The load generator printed: ${output}` })))
  )
})

/** Runs the load generator and fails with LoadFailed if a request failed. */
export const run = (plan: LoadPlan) =>
  Effect.filterOrFail(
    attempt(plan),
    ({ failures }) => failures === 0,
    ({ answered, failures, firstFailure }) =>
      new LoadFailed({ message: `${failures} of ${answered} requests on port ${plan.port} failed; the first: ${firstFailure}` })
  )

/** Latencies of all requests, in milliseconds. */
export const p50Of = ({ latencyMs }: LoadResult) => latencyMs.p50
export const p99Of = ({ latencyMs }: LoadResult) => latencyMs.p99

export const perSecondOf = ({ answered, seconds }: LoadResult) => answered / seconds

/** Returns the CPU time of the server under load per request, in microseconds. */
export const serviceCpuMicros = ({ cpuMicros }: LoadResult) => cpuMicros["service"] ?? 0

/** Returns the CPU time of the server under load and of Postgres per request, in microseconds. */
export const totalCpuMicros = (result: LoadResult) => serviceCpuMicros(result) + (result.cpuMicros["Postgres"] ?? 0)

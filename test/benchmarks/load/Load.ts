/** The load generator's interface: its plan, its result, and how it is run. */
import { Effect, Schema } from "effect"
import * as RequestKinds from "#test/benchmarks/load/RequestKinds.ts"
import * as Processes from "#test/benchmarks/Processes.ts"

/**
 * Request number k of a kind asks for VAT ID k of `vatIds`, beginning again at their end with another key for each. Without `perSecond`
 * each connection sends its next request when it has its answer (closed loop); with it requests are due at that rate whether earlier ones
 * are answered or not (open loop), and their latency counts from the moment they were due. `requests` ends the run after so many.
 */
export const LoadPlan = Schema.Struct({
  port: Schema.Int,
  /** Several are mixed by their weights. */
  kinds: Schema.NonEmptyArray(Schema.Literals(RequestKinds.names)),
  vatIds: Schema.NonEmptyArray(Schema.String),
  keys: Schema.NonEmptyArray(Schema.String),
  /** The number of the first new VAT ID, for live look-ups. */
  newFrom: Schema.Int,
  connections: Schema.Int,
  warmUpMs: Schema.Finite,
  durationMs: Schema.Finite,
  perSecond: Schema.NullOr(Schema.Finite),
  requests: Schema.NullOr(Schema.Int),
  /** Where VIES' interface is, if it is VIES itself that has the port: it is asked what the service would ask it. */
  viesPath: Schema.NullOr(Schema.String),
  /** Processes by name; their processor time during the run is measured, with that of their children. */
  watched: Schema.Record(Schema.String, Schema.Int)
})
export type LoadPlan = typeof LoadPlan.Type

const Summary = Schema.Struct({
  answered: Schema.Int,
  /** In milliseconds, as the two below. */
  p50: Schema.Finite,
  p99: Schema.Finite,
  max: Schema.Finite
})
export type Summary = typeof Summary.Type

/** What was measured after the warm-up. A failure is a response that its kind does not accept, and a connection that ended. */
export const LoadResult = Schema.Struct({
  answered: Schema.Int,
  seconds: Schema.Finite,
  failures: Schema.Int,
  firstFailure: Schema.NullOr(Schema.String),
  latencyMs: Summary,
  byKind: Schema.Record(Schema.String, Summary),
  /** By the second in which the answer came. */
  bySecond: Schema.Array(Summary),
  /** Open loop: how much later than due requests were written to a socket. */
  latenessMs: Summary,
  /** Processor time in microseconds per answered request: of the generator, of the watched processes, and of the rest of the machine. */
  cpuMicros: Schema.Record(Schema.String, Schema.Finite),
  /** With `requests`: the latency of each, by its number. */
  eachMs: Schema.Array(Schema.Finite)
})
export type LoadResult = typeof LoadResult.Type

export class LoadFailed extends Schema.TaggedError<LoadFailed>()("LoadFailed", { message: Schema.String }) {}

const encode = Schema.encodeEffect(Schema.fromJsonString(LoadPlan))
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(LoadResult))

/** Runs the generator in a process of its own. Failures are in the result. */
export const attempt = Effect.fnUntraced(function* (plan: LoadPlan) {
  const said = yield* Processes.output("load/LoadGenerator.ts", yield* encode(plan)).pipe(
    Effect.timeout(plan.warmUpMs + plan.durationMs + 60_000)
  )
  return yield* decode(said).pipe(
    Effect.catchTag("SchemaError", () => Effect.fail(new LoadFailed({ message: `The load generator said: ${said}` })))
  )
})

/** The same if a failed request invalidates the figure: it fails the run. */
export const run = (plan: LoadPlan) =>
  Effect.filterOrFail(
    attempt(plan),
    ({ failures }) => failures === 0,
    ({ answered, failures, firstFailure }) =>
      new LoadFailed({ message: `${failures} of ${answered} requests on port ${plan.port} failed; the first: ${firstFailure}` })
  )

export const perSecondOf = ({ answered, seconds }: LoadResult) => answered / seconds

/** Of the service, or what is in its place, in microseconds a request. */
export const serviceMicrosOf = ({ cpuMicros }: LoadResult) => cpuMicros["service"] ?? 0

/** Of the service and of Postgres, in microseconds a request. */
export const microsOf = (result: LoadResult) => serviceMicrosOf(result) + (result.cpuMicros["Postgres"] ?? 0)

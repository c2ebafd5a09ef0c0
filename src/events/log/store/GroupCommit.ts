/**
 * Group commit of inputs, such as commands or look-ups: all inputs that arrive while one batch is in flight form the next batch. No
 * timer delays an input, and batches grow with the load. (Effect's `RequestResolver` does not fit: it batches by time, and its
 * batches may overlap.)
 */
import { PgClient } from "@effect/sql-pg"
import { Array as Arr, Clock, Effect, Exit, Fiber, Latch, type Metric, Option, References, type Scope, type Tracer } from "effect"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

interface Waiting<I, O, E> {
  readonly input: I
  readonly done: (exit: Exit.Exit<O, E>) => void
  /** Start of the wait, in nanoseconds of the monotonic clock. */
  readonly since: bigint
  /** The span of the request if it is sampled, else null. */
  readonly span: Tracer.Span | null
}

/** Histograms of the size of each batch and of the wait of each input, in seconds. */
export interface BatchMeasures {
  readonly size: Metric.Histogram<number>
  readonly wait: Metric.Histogram<number>
}

/**
 * `run` gets 1 to `maxBatch` inputs, by default 500. It returns an Exit for each input, in order, or fails for all inputs together. At
 * most `maxWaiting` callers may wait, by default 20,000.
 */
export interface GroupCommitOptions<I, O, E> {
  readonly run: (inputs: Arr.NonEmptyReadonlyArray<I>) => Effect.Effect<ReadonlyArray<Exit.Exit<O, E>>, E>
  readonly maxBatch?: number
  readonly maxWaiting?: number
  readonly measures?: BatchMeasures
  /** Name of the SQL function that `run` calls, and of the span of a batch. Without a name, a batch has no span. */
  readonly procedure?: string
}

const sampledSpan = () => {
  const span = Fiber.getCurrent()?.cache.span
  return span?._tag === "Span" && span.sampled ? span : null
}

/** Maximum number of requests that a batch's span links to. */
const maxLinks = 32

/**
 * Wraps a batch in a span if one of its requests is sampled. The span is in a trace of its own, because it serves several requests.
 * The span links to the spans of these requests, and those spans link to it. It replaces the span of the SQL statement.
 */
const traced = <A, E>(
  procedure: string,
  server: Readonly<Record<string, unknown>>,
  batch: ReadonlyArray<Pick<Waiting<never, never, never>, "span">>,
  run: Effect.Effect<A, E>
) => {
  if (batch.every(({ span }) => span === null)) return run
  const spans = batch.flatMap(({ span }) => (span === null ? [] : [span]))
  const attributes = {
    ...server,
    "db.system.name": "postgresql",
    "db.operation.name": "SELECT",
    "db.stored_procedure.name": procedure,
    "db.operation.batch.size": batch.length
  }
  const links = spans.slice(0, maxLinks).map((span) => ({ span, attributes: {} }))
  return Effect.useSpan(procedure, { kind: "client", root: true, links, attributes }, (span) => {
    for (const served of spans) served.addLinks([{ span, attributes: {} }])
    return Effect.provideService(run, References.TracerEnabled, false)
  })
}

/** Returns the attributes of the database's address, as the spans of statements have them. */
const serverOf = ({ config: { database, host, port } }: PgClient.PgClient) => ({
  "db.namespace": database ?? "postgres",
  "server.address": host ?? "localhost",
  "server.port": port ?? 5432
})

/** Callers that have waited this long when a batch begins are rejected, because their requests are about to time out. */
const longestWaitNanos = 3_000_000_000n

const callbackFailed = "The callback of a request threw, a defect of the service; the other requests of its batch continue"

const full = Exit.fail(new StoreUnavailable({}))

const noResult = (index: number) => `The run of a batch returned no result for input ${index} (a defect)`

/**
 * Creates a function that adds an input to the next batch and returns its result. The function fails with StoreUnavailable at
 * once if too many callers wait, and if its batch does not begin within 3 s.
 */
export const make = Effect.fnUntraced(function* <I, O, E>({
  maxBatch = 500,
  maxWaiting = 20_000,
  ...options
}: GroupCommitOptions<I, O, E>): Effect.fn.Return<(input: I) => Effect.Effect<O, E | StoreUnavailable>, never, Scope.Scope> {
  // The callers that wait for the next batch. A batch takes callers out of this array and leaves a new array. A queue would be
  // slower: while a queue is never empty, it retains items that were taken, which slows garbage collection.
  let waiting: Array<Waiting<I, O, E | StoreUnavailable>> = []
  const hasWaiters = yield* Latch.make(false)
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()
  const server = Option.match(yield* Effect.serviceOption(PgClient.PgClient), { onNone: () => ({}), onSome: serverOf })

  const measure = ({ size, wait }: BatchMeasures, batch: Arr.NonEmptyReadonlyArray<Waiting<I, O, E | StoreUnavailable>>) => {
    const now = clock.monotonicTimeNanosUnsafe()
    size.updateUnsafe(batch.length, context)
    for (const { since } of batch) wait.updateUnsafe(Number(now - since) / 1e9, context)
  }

  /** Rejects callers that have waited too long and returns the others. */
  const stillWaiting = (batch: typeof waiting) => {
    const oldest = clock.monotonicTimeNanosUnsafe() - longestWaitNanos
    const late = batch.filter(({ since }) => since < oldest)
    for (const { done } of late) done(full)
    return late.length === 0 ? batch : batch.filter(({ since }) => since >= oldest)
  }

  /** Passes the results of a batch to its callers. A callback that throws affects neither other callers nor the next batch. */
  const settle = (batch: typeof waiting, exit: Exit.Exit<ReadonlyArray<Exit.Exit<O, E>>, E>) => {
    const rest = batch.entries()
    const settleRest: Effect.Effect<void> = Effect.sync(() => {
      for (const [index, { done }] of rest) {
        done(Exit.isFailure(exit) ? Exit.failCause(exit.cause) : (exit.value[index] ?? Exit.die(noResult(index))))
      }
    }).pipe(Effect.catchCause((cause) => Effect.andThen(Effect.logError(callbackFailed, cause), () => settleRest)))
    return settleRest
  }

  /**
   * Passes the results of the last batch to its callers. Runs while the next batch is in flight, so that the database does not wait
   * for it.
   */
  let unsettled: Effect.Effect<void> = Effect.void
  const settleLast = Effect.suspend(() => {
    const pending = unsettled
    unsettled = Effect.void
    return pending
  })

  const flush = Effect.fnUntraced(function* (batch: typeof waiting) {
    if (!Arr.isReadonlyArrayNonEmpty(batch)) return
    if (options.measures !== undefined) measure(options.measures, batch)
    const inputs = Arr.map(batch, ({ input }) => input)
    const run =
      options.procedure === undefined ? options.run(inputs) : traced(options.procedure, server, batch, options.run(inputs))
    const [exit] = yield* Effect.all([Effect.exit(run), settleLast], { concurrency: "unbounded" })
    unsettled = settle(batch, exit)
  })

  /** Takes up to `maxBatch` waiting callers, first come first served. */
  const take = () => {
    const rest = waiting.length > maxBatch ? waiting.slice(maxBatch) : []
    const batch = rest.length === 0 ? waiting : waiting.slice(0, maxBatch)
    waiting = rest
    if (rest.length === 0) hasWaiters.closeUnsafe()
    return batch
  }
  const next = Effect.suspend(() => (waiting.length === 0 ? Effect.andThen(settleLast, hasWaiters.await) : Effect.void))

  yield* next.pipe(
    Effect.map(take),
    Effect.flatMap((batch) => flush(stillWaiting(batch))),
    Effect.forever,
    Effect.ensuring(settleLast),
    Effect.forkScoped
  )

  return (input) =>
    Effect.callback((done) => {
      if (waiting.length >= maxWaiting) return done(full)
      waiting.push({ input, done, since: clock.monotonicTimeNanosUnsafe(), span: sampledSpan() })
      hasWaiters.openUnsafe()
    })
})

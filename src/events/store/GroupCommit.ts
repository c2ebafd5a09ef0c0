/**
 * Group commit: everything that waits while one batch is under way goes into the next one. No timer delays a lone caller, and the
 * busier the service, the larger the batches. (`RequestResolver` batches by time and lets batches overlap, which is another thing.)
 */
import { Array as Arr, Clock, Effect, Exit, Fiber, Latch, type Metric, References, type Scope, type Tracer } from "effect"

interface Waiting<I, O, E> {
  readonly input: I
  readonly done: (exit: Exit.Exit<O, E>) => void
  /** When it began to wait, in nanoseconds. */
  readonly since: bigint
  /** The span of its request, if that is sampled. */
  readonly span: Tracer.Span | null
}

/** Where the size of each batch and the wait of each input (in seconds) are measured. */
export interface BatchMeasures {
  readonly size: Metric.Histogram<number>
  readonly wait: Metric.Histogram<number>
}

/** `run` gets 1 to `maxBatch` inputs and gives back one exit for each, in their order, or fails for all; at most `maxWaiting` callers may wait. */
export interface GroupCommitOptions<I, O, E> {
  readonly run: (inputs: Arr.NonEmptyReadonlyArray<I>) => Effect.Effect<ReadonlyArray<Exit.Exit<O, E>>, E>
  readonly maxBatch: number
  readonly maxWaiting: number
  readonly onFull: () => E
  readonly measures?: BatchMeasures
  /** The function of the database that `run` calls: the name of a batch's span. */
  readonly procedure?: string
}

const sampledSpan = () => {
  const span = Fiber.getCurrent()?.cache.span
  return span?._tag === "Span" && span.sampled ? span : null
}

/** Requests that the span of a batch links to. */
const maxLinks = 32

/**
 * Gives a batch a span if it serves a sampled request: a trace of its own, because it belongs to all of its requests. Each request's span links
 * to it, and it to them. It stands for the statement, so that a batch has one span.
 */
const traced = <A, E>(
  procedure: string,
  batch: ReadonlyArray<Pick<Waiting<never, never, never>, "span">>,
  run: Effect.Effect<A, E>
) => {
  if (batch.every(({ span }) => span === null)) return run
  const spans = batch.flatMap(({ span }) => (span === null ? [] : [span]))
  const attributes = {
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

/**
 * Whoever has waited this long when a batch begins is told that there was no place in it: a caller has then had enough of waiting, and
 * what was not begun has changed nothing.
 */
const longestWaitNanos = 3_000_000_000n

/** A function that joins the next batch; it fails with `onFull()` at once when too many wait already, and after 3 s of waiting. */
export const make = Effect.fnUntraced(function* <I, O, E>(
  options: GroupCommitOptions<I, O, E>
): Effect.fn.Return<(input: I) => Effect.Effect<O, E>, never, Scope.Scope> {
  // A plain array that each batch leaves to the collector as a whole: a queue that never drains keeps what was taken from it for a while,
  // and what is kept for a while costs the collector most.
  let waiting: Array<Waiting<I, O, E>> = []
  const somebodyWaits = yield* Latch.make(false)
  const clock = yield* Clock.Clock
  const context = yield* Effect.context<never>()

  const measure = ({ size, wait }: BatchMeasures, batch: Arr.NonEmptyReadonlyArray<Waiting<I, O, E>>) => {
    const now = clock.monotonicTimeNanosUnsafe()
    size.updateUnsafe(batch.length, context)
    for (const { since } of batch) wait.updateUnsafe(Number(now - since) / 1e9, context)
  }

  /** The ones who have not waited too long; the others are sent away. */
  const stillWaiting = (batch: ReadonlyArray<Waiting<I, O, E>>) => {
    const oldest = clock.monotonicTimeNanosUnsafe() - longestWaitNanos
    const late = batch.filter(({ since }) => since < oldest)
    for (const { done } of late) done(Exit.fail(options.onFull()))
    return late.length === 0 ? batch : batch.filter(({ since }) => since >= oldest)
  }

  /** One effect for all of them. Whoever breaks on hearing it breaks neither the others nor the next batch. */
  const tell = (batch: ReadonlyArray<Waiting<I, O, E>>, exit: Exit.Exit<ReadonlyArray<Exit.Exit<O, E>>, E>) => {
    const rest = batch.entries()
    const tellRest: Effect.Effect<void> = Effect.sync(() => {
      for (const [index, { done }] of rest) {
        done(
          Exit.isFailure(exit) ? Exit.failCause(exit.cause) : (exit.value[index] ?? Exit.die(`The batch gave no result ${index}`))
        )
      }
    }).pipe(
      Effect.catchCause((cause) =>
        Effect.andThen(Effect.logError("What came of a batch could not be told to one of its callers", cause), () => tellRest)
      )
    )
    return tellRest
  }

  /** How to tell those of the last batch; they hear of it when the next one is under way, so that the database need not wait for that. */
  let untold: Effect.Effect<void> = Effect.void
  const tellLast = Effect.suspend(() => {
    const tellThem = untold
    untold = Effect.void
    return tellThem
  })

  const flush = Effect.fnUntraced(function* (batch: ReadonlyArray<Waiting<I, O, E>>) {
    if (!Arr.isReadonlyArrayNonEmpty(batch)) return
    if (options.measures !== undefined) measure(options.measures, batch)
    const inputs = Arr.map(batch, ({ input }) => input)
    const run = options.procedure === undefined ? options.run(inputs) : traced(options.procedure, batch, options.run(inputs))
    const [exit] = yield* Effect.all([Effect.exit(run), tellLast], { concurrency: "unbounded" })
    untold = tell(batch, exit)
  })

  /** Up to `maxBatch` of those who wait, the first ones first. */
  const take = () => {
    const rest = waiting.length > options.maxBatch ? waiting.slice(options.maxBatch) : []
    const taken = rest.length === 0 ? waiting : waiting.slice(0, options.maxBatch)
    waiting = rest
    if (rest.length === 0) somebodyWaits.closeUnsafe()
    return taken
  }
  const next = Effect.suspend(() => (waiting.length === 0 ? Effect.andThen(tellLast, somebodyWaits.await) : Effect.void))

  yield* next.pipe(
    Effect.map(take),
    Effect.flatMap((batch) => flush(stillWaiting(batch))),
    Effect.forever,
    Effect.ensuring(tellLast),
    Effect.forkScoped
  )

  return (input) =>
    Effect.callback((done) => {
      if (waiting.length >= options.maxWaiting) return done(Exit.fail(options.onFull()))
      waiting.push({ input, done, since: clock.monotonicTimeNanosUnsafe(), span: sampledSpan() })
      somebodyWaits.openUnsafe()
    })
})

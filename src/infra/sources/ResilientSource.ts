/**
 * One official source behind its guards: single flight for equal questions, a bulkhead per member state, circuit breakers (rules
 * 22, 23). Each replica has guards of its own.
 */
import { Cache, Context, Duration, Effect, Equal, Exit, Hash, Option, Queue, Semaphore } from "effect"
import { monotonicMs, monotonicMsOf } from "#domain/concurrency/MonotonicTime.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import { type Answer, SourceFailure, type SourceName } from "#domain/vat/Verdict.ts"
import * as SourceBreaker from "#infra/sources/SourceBreaker.ts"
import * as SourceHealth from "#infra/sources/SourceHealth.ts"
import { hung, maxRetryAfterS } from "#infra/sources/SourceHttp.ts"

/** `requester` is the VAT ID on whose behalf the source is asked. */
export interface SourceQuestion {
  readonly vatId: VatId
  readonly requester: VatId | null
  /** True if concurrent callers may share the answer. An answer with a consultation number belongs to one caller. */
  readonly isShared: boolean
  /** True if no client waits for the answer. */
  readonly isBackground?: boolean
}

export interface ResilientSourceOptions<A extends Answer> {
  readonly source: SourceName
  readonly ask: (question: SourceQuestion) => Effect.Effect<A, SourceFailure>
  /** A cheap request for the state of the source itself. */
  readonly probe: Effect.Effect<unknown, SourceFailure>
  /**
   * Maximum number of calls in flight per member state. The authorities publish no limit, and block clients that call too often.
   */
  readonly concurrentPerMemberState: number
  /** Timeout of one call. */
  readonly timeout: (vatId: VatId) => Duration.Input
}

/** Timeout of the wait for a free slot of the bulkhead. Then the question fails with the reason `saturated`. */
const slotTimeout = "10 seconds"
/** Duration of the pause of all calls to a source that blocks the IP address of this service. */
const blockedPauseMs = Duration.toMillis("10 minutes")
/** Limit of different questions in flight, far above the number of slots. */
const maxFlights = 100_000
/** Longer than the connect timeout (SourceHttp), to distinguish a probe that hangs from a source that is unreachable. */
const probeTimeout = "6 seconds"
/**
 * Time after a failed live call in which an open circuit is not probed. A probe calls another endpoint, which may answer during
 * an outage and would close the circuit.
 */
const probeGraceMs = Duration.toMillis("20 seconds")

export const make = Effect.fnUntraced(function* <A extends Answer>(options: ResilientSourceOptions<A>) {
  const { source } = options
  const breaker = yield* SourceBreaker.make(source)
  const health = yield* SourceHealth.make
  const slots = makeBulkhead(options.concurrentPerMemberState)
  const pause = makePause(source)
  const troubles = yield* Queue.sliding<number>(1)
  let lastLiveFailureMs = Number.NEGATIVE_INFINITY
  /** Whether the newest live call failed. */
  let isFailing = false

  const incidents = makeIncidents()
  const observe = (prefix: string) => (ended: SourceHealth.Ended) => {
    const { endedMs, failure } = ended
    // The budget rejected the question, so the source was not called.
    if (failure?.reason === "over_budget") return Effect.void
    health.observeCall(ended)
    if (failure === null) incidents.end(prefix)
    // A failure of the question alone says nothing about the source.
    isFailing = failure !== null && failure.scope !== "question"
    if (isFailing) lastLiveFailureMs = endedMs
    if (isFailing) Queue.offerUnsafe(troubles, endedMs)
    return failure === null ? Effect.void : pause.note(failure, ended)
  }

  const behindBreakers = <B>(prefix: string, call: Effect.Effect<B, SourceFailure>) =>
    whenEnded(incidents.bounded(prefix, call), observe(prefix)).pipe(breaker.source, breaker.memberState(prefix))

  /** Runs a call about a VAT ID behind the guards, but without single flight: other callers do not share it. */
  const through = <B>(vatId: VatId, call: Effect.Effect<B, SourceFailure>): Effect.Effect<B, SourceFailure> =>
    Effect.flatMap(pause.isOn, (isPaused) => {
      if (isPaused) return Effect.fail(SourceBreaker.circuitOpen(source))
      const { prefix } = vatId.memberState
      const timeout = Duration.fromInputUnsafe(options.timeout(vatId))
      const bounded = Effect.timeoutOrElse(call, { duration: timeout, orElse: () => Effect.fail(timedOut(source)) })
      const guarded = ifAbandoned(
        behindBreakers(prefix, bounded),
        Duration.toMillis(timeout) / 2,
        Effect.suspend(() => Effect.ignore(behindBreakers(prefix, Effect.fail(timedOut(source)))))
      )
      return slots(prefix, guarded, () => saturated(source))
    })

  // Single flight: callers share a call in flight. No answer is cached, because an entry expires when its call ends.
  const flights = yield* Cache.makeWith(({ question }: Flight) => through(question.vatId, options.ask(question)), {
    capacity: maxFlights,
    timeToLive: () => Duration.zero
  }).pipe(
    // The cache merges the services of its creator into each lookup. Without services here, a lookup copies none.
    Effect.updateContext((_: Context.Context<never>) => Context.empty())
  )

  const isUnavailable = Effect.zipWith(breaker.isSourceOpen, pause.isOn, (open, paused) => open || paused)

  /** Probes the source. Skips the probe if the circuit is open and a live call failed within `probeGraceMs`. */
  const probe = Effect.gen(function* () {
    if (yield* pause.isOn) return
    const sinceFailureMs = (yield* monotonicMs) - lastLiveFailureMs
    if ((yield* breaker.isSourceOpen) && sinceFailureMs < probeGraceMs) return
    const probing = Effect.timeoutOrElse(options.probe, { duration: probeTimeout, orElse: () => Effect.fail(timedOut(source)) })
    yield* whenEnded(breaker.probe(probing, isFailing), (ended) => Effect.sync(() => health.observeProbe(ended))).pipe(
      Effect.ignore
    )
  })

  return {
    source,
    /** Asks a question. Concurrent callers with the same question share one call if the question `isShared`. */
    ask: (question: SourceQuestion) =>
      question.isShared ? Cache.get(flights, new Flight(question)) : through(question.vatId, options.ask(question)),
    through,
    probe,
    /** Waits for a failed live call. Completes at once if a live call has failed since the last wait. */
    trouble: Effect.asVoid(Queue.take(troubles)),
    status: Effect.flatMap(isUnavailable, health.status),
    /** Returns the state of a member state's register: `degraded` while the next call decides whether the circuit closes. */
    register: Effect.fnUntraced(function* (prefix: string) {
      const refused = (yield* isUnavailable) || (yield* breaker.refusesMemberState(prefix))
      return registerStatus(refused, [...breaker.circuits(prefix), yield* pause.circuit])
    }),
    /** Seconds until the next call is allowed; null if a call is allowed now. */
    opensInSeconds: Effect.zipWith(breaker.opensInSeconds, pause.restMs, (opens, rest) =>
      rest > 0 ? Math.max(opens ?? 0, Math.ceil(rest / 1000)) : opens
    )
  }
})

export type ResilientSource<A extends Answer> = Effect.Success<ReturnType<typeof make<A>>>

/**
 * Bounds the pauses that a source or a register requests. A source that repeats its request ends its pause `maxRetryAfterS` after the first
 * request of an incident. A successful call ends the incident.
 */
const makeIncidents = () => {
  /** The end of the longest pause, on the monotonic clock, of the source ("") and of each register. */
  const ends = new Map<string, number>()
  const bound = (prefix: string, failure: SourceFailure, nowMs: number) => {
    if (failure.retry_after_s === undefined || failure.scope === "question") return failure
    const key = failure.scope === "source" ? "" : prefix
    const endMs = ends.get(key) ?? nowMs + maxRetryAfterS * 1_000
    ends.set(key, endMs)
    const restS = Math.max(0, Math.ceil((endMs - nowMs) / 1_000))
    return new SourceFailure({ ...failure, retry_after_s: Math.min(failure.retry_after_s, restS) })
  }
  return {
    bounded: <B>(prefix: string, call: Effect.Effect<B, SourceFailure>) =>
      Effect.catchTag(call, "SourceFailure", (failure) =>
        Effect.flatMap(monotonicMs, (nowMs) => Effect.fail(bound(prefix, failure, nowMs)))
      ),
    end: (prefix: string) => {
      ends.delete("")
      ends.delete(prefix)
    }
  }
}

/** Stops calls and probes for as long as the source requested, or for `blockedPauseMs` if it blocks the service's IP address. */
const makePause = (source: SourceName) => {
  /** On the monotonic clock. */
  let pausedUntilMs = Number.NEGATIVE_INFINITY
  /** Start and end of the pause on the wall clock, for the status. */
  let beganAtMs = 0
  let endsAtMs = 0
  const restMs = Effect.map(monotonicMs, (nowMs) => Math.max(0, pausedUntilMs - nowMs))
  return {
    restMs,
    isOn: Effect.map(restMs, (rest) => rest > 0),
    circuit: Effect.map(restMs, (rest): SourceBreaker.Circuit => ({
      isOpen: rest > 0,
      sinceMs: rest > 0 ? beganAtMs : endsAtMs
    })),
    /** Begins or extends the pause if the failure of a call requires it. */
    note: ({ reason, retry_after_s = 0, scope }: SourceFailure, { endedAtMs, endedMs }: SourceHealth.Ended) => {
      const isBlocked = reason === "blocked" && scope !== "question"
      const requestedMs = scope === "source" ? retry_after_s * 1_000 : 0
      const pauseMs = Math.max(requestedMs, isBlocked ? blockedPauseMs : 0)
      if (pauseMs > 0 && pausedUntilMs <= endedMs) beganAtMs = endedAtMs
      if (pauseMs > 0 && pausedUntilMs < endedMs + pauseMs) {
        pausedUntilMs = endedMs + pauseMs
        endsAtMs = endedAtMs + pauseMs
      }
      if (!isBlocked) return Effect.void
      return Effect.logError(
        `${source} blocks this service's address; pausing requests to ${source} for ${Duration.format(Duration.millis(blockedPauseMs))}`
      )
    }
  }
}

const registerStatus = (refused: boolean, circuits: ReadonlyArray<SourceBreaker.Circuit>) => {
  const open = circuits.filter(({ isOpen }) => isOpen).map(({ sinceMs }) => sinceMs)
  return open.length > 0
    ? { state: refused ? ("unavailable" as const) : ("degraded" as const), sinceMs: Math.min(...open) }
    : { state: "operational" as const, sinceMs: Math.max(...circuits.map(({ sinceMs }) => sinceMs)) }
}

/** Reports how a call ended, unless it was interrupted. */
const whenEnded = <B>(call: Effect.Effect<B, SourceFailure>, observe: (ended: SourceHealth.Ended) => Effect.Effect<void>) =>
  Effect.clockWith((clock) => {
    const startedMs = monotonicMsOf(clock)
    return Effect.onExit(call, (exit) => {
      if (Exit.hasInterrupts(exit)) return Effect.void
      const endedMs = monotonicMsOf(clock)
      const failure = Option.getOrNull(Exit.findErrorOption(exit))
      return observe({ endedMs, endedAtMs: clock.currentTimeMillisUnsafe(), durationMs: endedMs - startedMs, failure })
    })
  })

/**
 * Runs `note` if the last caller abandons the call after `graceMs` or later. The call then counts as a timeout. Without this, a
 * hanging register would never open its breaker, because callers often have shorter timeouts than the call.
 */
const ifAbandoned = <B>(call: Effect.Effect<B, SourceFailure>, graceMs: number, note: Effect.Effect<void>) =>
  Effect.clockWith((clock) => {
    const startedMs = monotonicMsOf(clock)
    return Effect.onInterrupt(call, () => (monotonicMsOf(clock) - startedMs >= graceMs ? note : Effect.void))
  })

/** Bounds the calls in flight per member state, so that a slow register does not delay calls to other registers. */
const makeBulkhead = (perMemberState: number) => {
  const semaphores = new Map<string, Semaphore.Semaphore>()
  return <B>(memberState: string, call: Effect.Effect<B, SourceFailure>, full: () => SourceFailure) => {
    const slots = semaphores.get(memberState) ?? Semaphore.makeUnsafe(perMemberState)
    semaphores.set(memberState, slots)
    const waiting = slots.take(1).pipe(Effect.timeoutOrElse({ duration: slotTimeout, orElse: () => Effect.fail(full()) }))
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(waiting), Effect.ensuring(restore(call), slots.release(1)))
    )
  }
}

const timedOut = (source: SourceName) => new SourceFailure({ source, code: null, ...hung })

const saturated = (source: SourceName) =>
  new SourceFailure({ source, reason: "saturated", code: null, scope: "question", retry: "never" })

/** The cache key of a question. Equal questions have equal flights. */
class Flight implements Equal.Equal {
  readonly question: SourceQuestion
  private readonly key: string
  constructor(question: SourceQuestion) {
    this.question = question
    // Background questions and clients' questions share no call, because the budget may refuse only the background question.
    this.key = `${question.vatId.value}/${question.requester?.value ?? ""}/${question.isBackground === true ? "background" : ""}`
  }
  [Equal.symbol](that: Equal.Equal): boolean {
    return that instanceof Flight && that.key === this.key
  }
  [Hash.symbol](): number {
    return Hash.string(this.key)
  }
}

/**
 * One official source behind its guards: one call for concurrent questions that are the same, a bound on calls under way, breakers
 * (DECISIONS 22). The guards belong to this replica alone.
 */
import { Cache, Clock, Duration, Effect, Equal, Exit, Hash, Option, Queue, Ref, Semaphore } from "effect"
import type { VatId } from "#domain/VatId.ts"
import { type Answer, SourceFailure, type SourceName } from "#domain/Verdict.ts"
import * as SourceBreaker from "#infra/SourceBreaker.ts"
import * as SourceHealth from "#infra/SourceHealth.ts"
import { hung, maxRetryAfterS } from "#infra/SourceHttp.ts"

/** `requester` is whose VAT ID the question is asked for. */
export interface GuardedQuestion {
  readonly vatId: VatId
  readonly requester: VatId | null
}

export interface GuardedSourceOptions<A extends Answer> {
  readonly source: SourceName
  readonly ask: (question: GuardedQuestion) => Effect.Effect<A, SourceFailure>
  /** A cheap question about the source itself. */
  readonly probe: Effect.Effect<unknown, SourceFailure>
  /** Calls under way per member state's register: the authorities publish no limit, and bar clients that ask too much. */
  readonly concurrentPerMemberState: number
  /** How long one call may take. */
  readonly timeout: (vatId: VatId) => Duration.Input
}

/** How long a question waits for a free call before it is `saturated`. */
const patience = "10 seconds"
/** A source that bars our address is left alone this long. */
const blockedPause = Duration.minutes(10)
/** Different questions under way at once; far above what the slots let through. */
const maxFlights = 100_000
/** Longer than a connection may take (SourceHttp): of a probe that hangs it is known whether anybody is there. */
const probePatience = "6 seconds"
/** After a live failure only live traffic may close a breaker for this long: a probe is another question and may get an answer. */
const probeGrace = Duration.seconds(20)

export const make = Effect.fnUntraced(function* <A extends Answer>(options: GuardedSourceOptions<A>) {
  const { source } = options
  const breaker = yield* SourceBreaker.make(source)
  const health = yield* SourceHealth.make
  const slots = makeSlots(options.concurrentPerMemberState)
  const pause = yield* makePause(source)
  const lastLiveFailure = yield* Ref.make(0)
  /** Whether the newest live call failed. */
  const isFailing = yield* Ref.make(false)
  const troubles = yield* Queue.sliding<number>(1)

  const observed = Effect.fnUntraced(function* <B>(call: Effect.Effect<B, SourceFailure>) {
    const { ended, exit, failure, durationMs } = yield* timed(call)
    // What is only this question's own fault says nothing about the source.
    const reason = failure !== null && failure.scope !== "question" ? failure.reason : null
    yield* health.observe({ durationMs, reason })
    yield* Ref.set(isFailing, reason !== null)
    if (reason !== null) {
      yield* Ref.set(lastLiveFailure, ended)
      yield* Queue.offer(troubles, ended)
    }
    if (failure !== null) yield* pause.note(failure, ended)
    return yield* exit
  })

  /** Makes a call about a VAT ID behind the guards, but on its own: it is not shared. */
  const through = Effect.fnUntraced(function* <B>(vatId: VatId, call: Effect.Effect<B, SourceFailure>) {
    if (yield* pause.isOn) return yield* SourceBreaker.circuitOpen(source)
    const { prefix } = vatId.memberState
    const timeout = options.timeout(vatId)
    const behindBreakers = <C>(effect: Effect.Effect<C, SourceFailure>) =>
      effect.pipe(observed, breaker.source, breaker.memberState(prefix))
    const guarded = call.pipe(
      Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(timedOut(source)) }),
      behindBreakers,
      ifGivenUp(timeout, Effect.ignore(behindBreakers(Effect.fail(timedOut(source)))))
    )
    return yield* slots(prefix, guarded, () => saturated(source))
  })

  // A flight is gone as soon as it has landed: this shares calls, it does not remember answers.
  const flights = yield* Cache.makeWith(({ question }: Flight) => through(question.vatId, options.ask(question)), {
    capacity: maxFlights,
    timeToLive: () => Duration.zero
  })

  const isUnavailable = Effect.zipWith(breaker.isSourceOpen, pause.isOn, (open, paused) => open || paused)

  /** A probe's success may close an open circuit only where no live call failed just now. */
  const probe = Effect.gen(function* () {
    if (yield* pause.isOn) return
    const sinceFailure = (yield* Clock.currentTimeMillis) - (yield* Ref.get(lastLiveFailure))
    if ((yield* breaker.isSourceOpen) && sinceFailure < Duration.toMillis(probeGrace)) return
    const probing = Effect.timeoutOrElse(options.probe, { duration: probePatience, orElse: () => Effect.fail(timedOut(source)) })
    const { durationMs, failure } = yield* timed(breaker.probe(probing, yield* Ref.get(isFailing)))
    if (failure?.reason !== "circuit_open") yield* health.observe({ durationMs, reason: failure?.reason ?? null })
  })

  return {
    source,
    /** Concurrent callers with the same question share one call. */
    ask: (question: GuardedQuestion) => Cache.get(flights, new Flight(question)),
    through,
    probe,
    /** Ends when a live call has failed since the last time. */
    trouble: Effect.asVoid(Queue.take(troubles)),
    /** Whether a question about this VAT ID would be refused without a call. */
    refuses: ({ memberState }: VatId) =>
      Effect.zipWith(
        isUnavailable,
        breaker.refusesMemberState(memberState.prefix),
        (unavailable, refused) => unavailable || refused
      ),
    status: Effect.flatMap(isUnavailable, health.status),
    /** Seconds until it may be asked again; null where it may be now. */
    opensInSeconds: Effect.zipWith(breaker.opensInSeconds, pause.restMs, (opens, rest) =>
      rest > 0 ? Math.max(opens ?? 0, Math.ceil(rest / 1000)) : opens
    )
  }
})

export type GuardedSource<A extends Answer> = Effect.Success<ReturnType<typeof make<A>>>

/** A source is not asked, nor probed, for as long as it has asked for, or for a while where it bars our address. */
const makePause = Effect.fnUntraced(function* (source: SourceName) {
  const pausedUntil = yield* Ref.make(0)
  const restMs = Effect.zipWith(Clock.currentTimeMillis, Ref.get(pausedUntil), (now, until) => Math.max(0, until - now))
  return {
    restMs,
    isOn: Effect.map(restMs, (rest) => rest > 0),
    /** Notes a failure of a call that ended at `ended`. */
    note: Effect.fnUntraced(function* ({ reason, retry_after_s = 0, scope }: SourceFailure, ended: number) {
      const isBlocked = reason === "blocked" && scope !== "question"
      const asked = scope === "source" ? Math.min(retry_after_s, maxRetryAfterS) * 1_000 : 0
      const until = ended + Math.max(asked, isBlocked ? Duration.toMillis(blockedPause) : 0)
      yield* Ref.update(pausedUntil, (before) => Math.max(before, until))
      if (!isBlocked) return
      yield* Effect.logError(`${source} bars this service's address; it is not asked for ${Duration.format(blockedPause)}`)
    })
  }
})

/** Runs a call and says how it ended, when, and after how many ms. */
const timed = Effect.fnUntraced(function* <B>(call: Effect.Effect<B, SourceFailure>) {
  const started = yield* Clock.currentTimeMillis
  const exit = yield* Effect.exit(call)
  const ended = yield* Clock.currentTimeMillis
  return { exit, failure: Option.getOrNull(Exit.findErrorOption(exit)), ended, durationMs: ended - started }
})

/**
 * Callers have time-outs of their own, mostly shorter ones: a register that hangs would never be found out if all of them left before. So
 * when the last one leaves a call for which half of the time is over, that is noted like a time-out.
 */
const ifGivenUp =
  (timeout: Duration.Input, note: Effect.Effect<void>) =>
  <B>(call: Effect.Effect<B, SourceFailure>) =>
    Effect.flatMap(Clock.currentTimeMillis, (started) =>
      Effect.onInterrupt(call, () =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => (now - started >= Duration.toMillis(timeout) / 2 ? note : Effect.void))
      )
    )

/** Bounds the calls under way for each member state, so that none waits for another's register. */
const makeSlots = (perMemberState: number) => {
  const semaphores = new Map<string, Semaphore.Semaphore>()
  return <B>(memberState: string, call: Effect.Effect<B, SourceFailure>, full: () => SourceFailure) => {
    const slots = semaphores.get(memberState) ?? Semaphore.makeUnsafe(perMemberState)
    semaphores.set(memberState, slots)
    const waiting = slots.take(1).pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(full()) }))
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(restore(waiting), Effect.ensuring(restore(call), slots.release(1)))
    )
  }
}

const timedOut = (source: SourceName) => new SourceFailure({ source, code: null, ...hung })

const saturated = (source: SourceName) =>
  new SourceFailure({ source, reason: "saturated", code: null, scope: "question", retry: "never" })

/** Equal questions have equal flights. */
class Flight implements Equal.Equal {
  readonly question: GuardedQuestion
  private readonly key: string
  constructor(question: GuardedQuestion) {
    this.question = question
    this.key = `${question.vatId.value}/${question.requester?.value ?? ""}`
  }
  [Equal.symbol](that: Equal.Equal): boolean {
    return that instanceof Flight && that.key === this.key
  }
  [Hash.symbol](): number {
    return Hash.string(this.key)
  }
}

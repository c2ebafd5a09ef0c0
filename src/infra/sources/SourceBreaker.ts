/** The circuit breakers of one source: one for the source, and one per member state's register behind it (rule 23). */
import { Clock, Duration, Effect, Exit, Layer, Option, Schedule } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { onMonotonicTime } from "#domain/concurrency/MonotonicTime.ts"
import { SourceFailure, type SourceName } from "#domain/vat/Verdict.ts"
import { maxRetryAfterS } from "#infra/sources/SourceHttp.ts"

/**
 * Consecutive failures that open a breaker. Two are enough for a source, because it is probed right after its first failure; a register
 * has no probe.
 */
const failuresToOpen = { source: 2, memberState: 3 }
/** An open circuit lets a call through after 5 s at first and 10 s at most, so that traffic resumes soon after an outage. */
const openDuration = Schedule.min([Schedule.exponential("5 seconds"), Schedule.spaced("10 seconds")])
/** The longest pause that a source can request. */
const maxOpenDuration = Duration.seconds(maxRetryAfterS)

export const make = Effect.fnUntraced(function* (source: SourceName) {
  const sourceBreaker = yield* makeBreaker(failuresToOpen.source)
  const registers = yield* makeBreaker(failuresToOpen.memberState)
  const startedMs = yield* Clock.currentTimeMillis
  /** The keys are names of sources and prefixes of member states. They cannot collide. */
  const circuits = new Map<string, Circuit>()
  const circuitOf = (key: string): Circuit => circuits.get(key) ?? { isOpen: false, sinceMs: startedMs }

  /** Records the time if the circuit has opened or closed. */
  const note = (breaker: CircuitBreaker.CircuitBreaker, key: string) =>
    Effect.zipWith(stateOf(breaker, key), Clock.currentTimeMillis, ({ _tag }, nowMs) => {
      const isOpen = _tag !== "Closed"
      if (isOpen !== circuitOf(key).isOpen) circuits.set(key, { isOpen, sinceMs: nowMs })
    })

  /**
   * Guards a call by a circuit, which rejects the call while the circuit is open. `classify` turns the call's result into an
   * outcome for the circuit.
   */
  const behind =
    (breaker: CircuitBreaker.CircuitBreaker, key: string, classify: (failure: SourceFailure | null) => CircuitBreaker.Outcome) =>
    <A>(call: Effect.Effect<A, SourceFailure>) =>
      breaker
        .execute(call, {
          key,
          classify: (exit: Exit.Exit<A, SourceFailure>) => classify(Option.getOrNull(Exit.findErrorOption(exit)))
        })
        .pipe(
          Effect.catchTag("CircuitBreakerError", () => Effect.fail(circuitOpen(source))),
          Effect.ensuring(note(breaker, key))
        )

  const isSourceOpen = Effect.map(stateOf(sourceBreaker, source), (state) => state._tag !== "Closed")

  return {
    /** Guards a call by the source's breaker: only failures of the source as a whole count. */
    source: behind(sourceBreaker, source, ofScope("source", CircuitBreaker.success)),
    /** Guards a call by the breaker of a member state's register. */
    memberState: (prefix: string) => behind(registers, prefix, ofScope("member_state", CircuitBreaker.ignored)),
    /**
     * Guards a probe. A failed probe counts only if its failure concerns the whole source, because a broken status page is no
     * outage. A successful probe closes an open circuit, but does not reset the count of failed live calls. `isFailing` is true
     * if live calls fail as well.
     */
    probe: Effect.fnUntraced(function* <A>(call: Effect.Effect<A, SourceFailure>, isFailing: boolean) {
      const success = (yield* isSourceOpen) ? CircuitBreaker.success : CircuitBreaker.ignored
      return yield* behind(sourceBreaker, source, (failure) => {
        if (failure === null) return success
        return isOfWholeSource(failure, isFailing) ? CircuitBreaker.failure() : CircuitBreaker.ignored
      })(call)
    }),
    isSourceOpen,
    /** The circuits that a call about a VAT ID of this member state passes. */
    circuits: (prefix: string): ReadonlyArray<Circuit> => [circuitOf(source), circuitOf(prefix)],
    /**
     * Returns true if a call would be rejected now. When the open time has passed, a call is let through to test the register,
     * although the circuit is not closed yet.
     */
    refusesMemberState: (prefix: string) => Effect.map(stateOf(registers, prefix), refusesNow),
    /** Seconds until an open circuit lets a call through again; null if it is not open. */
    opensInSeconds: Effect.map(stateOf(sourceBreaker, source), (state) =>
      state._tag === "Open" ? Math.ceil(Duration.toSeconds(state.retryAfter)) : null
    )
  }
})

/** Whether a circuit is open, and when it opened or closed. */
export interface Circuit {
  readonly isOpen: boolean
  readonly sinceMs: number
}

const stateOf = (breaker: CircuitBreaker.CircuitBreaker, key: string) =>
  breaker.state(key).pipe(Effect.catchTag("CircuitBreakerError", Effect.die))

const refusesNow = (state: CircuitBreaker.State) =>
  state._tag === "Open" ? !Duration.isZero(state.retryAfter) : state._tag === "HalfOpen" && state.probing

/** Returns a new store of circuits that measures open times with the monotonic clock. A shared layer would share the circuits. */
const layerStore = () =>
  Layer.effect(
    CircuitBreaker.CircuitBreakerStore,
    Effect.map(CircuitBreaker.CircuitBreakerStore, ({ admit, record, state }) => ({
      admit: (key) => onMonotonicTime(admit(key)),
      record: (outcome) => onMonotonicTime(record(outcome)),
      state: (key) => onMonotonicTime(state(key))
    }))
  ).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))

const makeBreaker = (failures: number) =>
  CircuitBreaker.make({ tripPolicy: CircuitBreaker.consecutive(failures), openDuration, maxOpenDuration }).pipe(
    Effect.provide(layerStore())
  )

/** Returns the failure of a call that an open circuit rejects. */
export const circuitOpen = (source: SourceName) =>
  new SourceFailure({ source, reason: "circuit_open", code: null, scope: "question", retry: "never" })

/**
 * Returns true if a failed probe means that the source is unreachable or unavailable. A status such as 404 concerns one endpoint.
 * A timeout on an open connection (no code) also concerns one endpoint, unless live calls fail as well.
 */
const isOfWholeSource = ({ code, reason }: SourceFailure, isFailing: boolean) =>
  reason === "unreachable" ||
  (reason === "timeout" && (code !== null || isFailing)) ||
  (reason === "unavailable" && code === null)

/** Returns a failure in the form of the circuit breaker. A pause that the source requests extends the open time. */
const failureOf = ({ retry_after_s }: SourceFailure) =>
  CircuitBreaker.failure(retry_after_s === undefined ? {} : { retryAfter: Duration.seconds(retry_after_s) })

/**
 * Returns true if a failed call does not show whether the rest of the source works: the call was not made, or it timed out on an
 * open connection (no code).
 */
const saysNothing = ({ code, reason }: SourceFailure) =>
  reason === "saturated" || reason === "circuit_open" || reason === "over_budget" || (reason === "timeout" && code === null)

const ofScope = (scope: SourceFailure["scope"], otherwise: CircuitBreaker.Outcome) => (failure: SourceFailure | null) => {
  if (failure === null) return CircuitBreaker.success
  if (failure.scope === scope) return failureOf(failure)
  return saysNothing(failure) ? CircuitBreaker.ignored : otherwise
}

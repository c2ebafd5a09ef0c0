/** The breakers of one source: one for the source itself, one for each member state's register behind it (DECISIONS 22). */
import { Duration, Effect, Exit, Option, Schedule } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { SourceFailure, type SourceName } from "#domain/Verdict.ts"
import { maxRetryAfterS } from "#infra/SourceHttp.ts"

/**
 * This many failures in a row open a breaker. A source that failed once is probed at once, so two are enough to tell an outage from a
 * mishap; a register behind it has no probe.
 */
const failuresToOpen = { source: 2, memberState: 3 }
/** An open circuit lets a call through after 5 s at first and at most 20 s, so that traffic is back soon after the source. */
const openDuration = Schedule.min([Schedule.exponential("5 seconds"), Schedule.spaced("20 seconds")])
/** The longest pause of a source's own asking that is kept. */
const maxOpenDuration = Duration.seconds(maxRetryAfterS)

export const make = Effect.fnUntraced(function* (source: SourceName) {
  const sourceBreaker = yield* makeBreaker(failuresToOpen.source)
  const registers = yield* makeBreaker(failuresToOpen.memberState)

  /** Lets a call pass unless the circuit is open; `classify` tells what its end says about the health of what is behind it. */
  const behind =
    (breaker: CircuitBreaker.CircuitBreaker, key: string, classify: (failure: SourceFailure | null) => CircuitBreaker.Outcome) =>
    <A>(call: Effect.Effect<A, SourceFailure>) =>
      breaker
        .execute(call, {
          key,
          classify: (exit: Exit.Exit<A, SourceFailure>) => classify(Option.getOrNull(Exit.findErrorOption(exit)))
        })
        .pipe(Effect.catchTag("CircuitBreakerError", () => Effect.fail(circuitOpen(source))))

  const stateOf = (breaker: CircuitBreaker.CircuitBreaker, key: string) =>
    breaker.state(key).pipe(Effect.catchTag("CircuitBreakerError", Effect.die))
  const isSourceOpen = Effect.map(stateOf(sourceBreaker, source), (state) => state._tag !== "Closed")

  return {
    /** Guards a call by the source's breaker: only failures of the source as a whole count. */
    source: behind(sourceBreaker, source, ofScope("source", CircuitBreaker.success)),
    /** Guards a call by the breaker of a member state's register. */
    memberState: (prefix: string) => behind(registers, prefix, ofScope("member_state", CircuitBreaker.ignored)),
    /**
     * Guards a probe. Its failure counts where it speaks of the source as a whole: whoever cannot say how he is may still answer what he is
     * for. `isFailing`: live calls fail as well. Its success undoes no failure of a live call while the circuit is closed.
     */
    probe: Effect.fnUntraced(function* <A>(call: Effect.Effect<A, SourceFailure>, isFailing: boolean) {
      const success = (yield* isSourceOpen) ? CircuitBreaker.success : CircuitBreaker.ignored
      return yield* behind(sourceBreaker, source, (failure) => {
        if (failure === null) return success
        return isOfWholeSource(failure, isFailing) ? CircuitBreaker.failure() : CircuitBreaker.ignored
      })(call)
    }),
    isSourceOpen,
    /** Whether a call would be refused now: no more once the time is over, although nobody has called since. */
    refusesMemberState: (prefix: string) => Effect.map(stateOf(registers, prefix), refusesNow),
    /** Seconds until an open circuit lets a call through again; null where it is not open. */
    opensInSeconds: Effect.map(stateOf(sourceBreaker, source), (state) =>
      state._tag === "Open" ? Math.ceil(Duration.toSeconds(state.retryAfter)) : null
    )
  }
})

const refusesNow = (state: CircuitBreaker.State) =>
  state._tag === "Open" ? !Duration.isZero(state.retryAfter) : state._tag === "HalfOpen" && state.probing

const makeBreaker = (failures: number) =>
  CircuitBreaker.make({ tripPolicy: CircuitBreaker.consecutive(failures), openDuration, maxOpenDuration }).pipe(
    Effect.provide(CircuitBreaker.layerStoreMemory())
  )

/** Not asked, because it failed so often just now. */
export const circuitOpen = (source: SourceName) =>
  new SourceFailure({ source, reason: "circuit_open", code: null, scope: "question", retry: "never" })

/**
 * Nobody is there, or the source says of itself that it is not available. A status such as 404 is that of one endpoint, and so is an answer
 * that does not come over a connection that there is (no code), unless nothing else is answered either.
 */
const isOfWholeSource = ({ code, reason }: SourceFailure, isFailing: boolean) =>
  reason === "unreachable" ||
  (reason === "timeout" && (code !== null || isFailing)) ||
  (reason === "unavailable" && code === null)

/** A source that names a pause is left alone for that, within reason. */
const failureOf = ({ retry_after_s }: SourceFailure) =>
  CircuitBreaker.failure(retry_after_s === undefined ? {} : { retryAfter: Duration.seconds(retry_after_s) })

/** A question that was not asked, or not answered by anybody (no code), says nothing of who else stands behind it. */
const saysNothing = ({ code, reason }: SourceFailure) =>
  reason === "saturated" || reason === "circuit_open" || (reason === "timeout" && code === null)

const ofScope = (scope: SourceFailure["scope"], otherwise: CircuitBreaker.Outcome) => (failure: SourceFailure | null) => {
  if (failure === null) return CircuitBreaker.success
  if (failure.scope === scope) return failureOf(failure)
  return saysNothing(failure) ? CircuitBreaker.ignored : otherwise
}

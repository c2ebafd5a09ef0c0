/** The breakers of one source: one for the source itself, one for each member state's register behind it (DECISIONS 22). */
import { Duration, Effect, Exit, Option, Schedule } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { SourceFailure, type SourceName } from "#domain/Verdict.ts"

/** This many failures in a row open a breaker, for 5 s at first and at most 20 s, so that traffic is back soon after the source. */
const failuresToOpen = 3
const openDuration = Schedule.min([Schedule.exponential("5 seconds"), Schedule.spaced("20 seconds")])

export const make = Effect.fnUntraced(function* (source: SourceName) {
  const breaker = yield* CircuitBreaker.make({ tripPolicy: CircuitBreaker.consecutive(failuresToOpen), openDuration }).pipe(
    Effect.provide(CircuitBreaker.layerStoreMemory())
  )

  /** Lets a call pass unless the circuit is open; `classify` tells what a failure says about the health of what is behind it. */
  const behind =
    (key: string, classify: (failure: SourceFailure) => CircuitBreaker.Outcome) =>
    <A>(call: Effect.Effect<A, SourceFailure>) =>
      breaker
        .execute(call, {
          key,
          classify: (exit: Exit.Exit<A, SourceFailure>) =>
            Option.match(Exit.findErrorOption(exit), { onNone: () => CircuitBreaker.success, onSome: classify })
        })
        .pipe(Effect.catchTag("CircuitBreakerError", () => Effect.fail(circuitOpen(source))))

  const stateOf = (key: string) => breaker.state(key).pipe(Effect.catchTag("CircuitBreakerError", Effect.die))

  return {
    /** Guards a call by the source's breaker: only failures of the source as a whole count. */
    source: behind(source, ofScope("source", CircuitBreaker.success)),
    /** Guards a call by the breaker of a member state's register. */
    memberState: (prefix: string) => behind(`${source}/${prefix}`, ofScope("member_state", CircuitBreaker.ignored)),
    /** Guards a probe: every failure of it counts. */
    probe: behind(source, () => CircuitBreaker.failure()),
    isSourceOpen: Effect.map(stateOf(source), (state) => state._tag !== "Closed"),
    isMemberStateOpen: (prefix: string) => Effect.map(stateOf(`${source}/${prefix}`), (state) => state._tag !== "Closed"),
    /** Seconds until an open circuit lets a call through again; null where it is not open. */
    opensInSeconds: Effect.map(stateOf(source), (state) =>
      state._tag === "Open" ? Math.ceil(Duration.toSeconds(state.retryAfter)) : null
    )
  }
})

/** Not asked, because it failed so often just now. */
export const circuitOpen = (source: SourceName) =>
  new SourceFailure({ source, reason: "circuit_open", code: null, scope: "question", retry: "never" })

const ofScope = (scope: SourceFailure["scope"], otherwise: CircuitBreaker.Outcome) => (failure: SourceFailure) => {
  if (failure.scope === scope) return CircuitBreaker.failure()
  // A question that was not asked says nothing.
  return failure.reason === "saturated" || failure.reason === "circuit_open" ? CircuitBreaker.ignored : otherwise
}

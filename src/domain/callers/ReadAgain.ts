/** Repeats work whose cached value had moved. */
import { Effect, Predicate } from "effect"
import type { PreconditionFailed } from "#domain/callers/Metering.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Maximum number of attempts. An attempt fails if the value moved after it was read. */
const maxAttempts = 10

/**
 * Runs `use` with a value that was read before. If `use` fails with PreconditionFailed, nothing was stored or counted: the value is
 * read again, and `use` is repeated. `readAgain` may fail with a failure that it does not handle.
 */
export const whileOutdated = <V, A, E, E2>(
  value: V,
  use: (value: V) => Effect.Effect<A, E | PreconditionFailed>,
  readAgain: (failure: PreconditionFailed, value: V) => Effect.Effect<V, E2>,
  left = maxAttempts
): Effect.Effect<A, E | E2 | StoreUnavailable> =>
  Effect.matchEffect(use(value), {
    onSuccess: Effect.succeed,
    onFailure: (failure): Effect.Effect<A, E | E2 | StoreUnavailable> => {
      if (!isPreconditionFailed(failure)) return Effect.fail(failure)
      if (left === 1)
        return Effect.fail(new StoreUnavailable({ cause: `The cached ${failure.outdated} was outdated at every attempt` }))
      return Effect.flatMap(readAgain(failure, value), (current) => whileOutdated(current, use, readAgain, left - 1))
    }
  })

const isPreconditionFailed = (error: unknown): error is PreconditionFailed => Predicate.isTagged(error, "PreconditionFailed")

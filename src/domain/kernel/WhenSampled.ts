/** Creates spans only for sampled traces. */
import { Effect } from "effect"

/** Nothing of the source code is exported, so spans capture no stack. */
const withoutStack = { captureStackTrace: false }

/** Runs an effect in a span of its own if the trace is sampled. Most are not, and then nothing is allocated. */
export const whenSampled =
  (name: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => (fiber.cache.span?.sampled === true ? Effect.withSpan(effect, name, withoutStack) : effect))

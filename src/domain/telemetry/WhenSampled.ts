/** Creates spans only for sampled traces. */
import { Effect } from "effect"

/** Spans capture no stack trace, because exported spans must not contain paths of the source code. */
const withoutStack = { captureStackTrace: false }

/** Runs an effect in a span of its own if the trace is sampled. Most traces are not sampled, and then no span is allocated. */
export const whenSampled =
  (name: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => (fiber.cache.span?.sampled === true ? Effect.withSpan(effect, name, withoutStack) : effect))

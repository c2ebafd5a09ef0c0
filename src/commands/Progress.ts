/** Shows the progress of long work on standard error. */
import { Clock, Console, Effect, Ref } from "effect"

/** Shorter work shows no progress. */
const everyMs = 2_000

/** Prints at intervals how many of the total are done. */
export const make = Effect.fnUntraced(function* (what: string) {
  const last = yield* Ref.make(yield* Clock.currentTimeMillis)
  return Effect.fnUntraced(function* (done: number, of: number) {
    const now = yield* Clock.currentTimeMillis
    if (now - (yield* Ref.get(last)) < everyMs) return
    yield* Ref.set(last, now)
    yield* Console.error(`${done} of ${of} ${what} (${of === 0 ? 100 : Math.floor((100 * done) / of)} %)`)
  })
})

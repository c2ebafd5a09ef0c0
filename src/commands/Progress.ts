/** Tells people on standard error how far long work is. */
import { Clock, Console, Effect, Ref } from "effect"

/** Work that is done sooner says nothing. */
const everyMs = 2_000

/** Says now and then how many are done, of how many. */
export const make = Effect.fnUntraced(function* (what: string) {
  const last = yield* Ref.make(yield* Clock.currentTimeMillis)
  return Effect.fnUntraced(function* (done: number, of: number) {
    const now = yield* Clock.currentTimeMillis
    if (now - (yield* Ref.get(last)) < everyMs) return
    yield* Ref.set(last, now)
    yield* Console.error(`${done} of ${of} ${what} (${of === 0 ? 100 : Math.floor((100 * done) / of)} %)`)
  })
})

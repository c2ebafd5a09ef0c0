/** Shows the progress of long work on standard error: as a bar on a terminal, else as lines. */
import { Clock, Console, Effect, Ref } from "effect"

/** Minimum time before the first line of progress and between two lines. Work that takes less time prints no line. */
const lineEveryMs = 2_000
const barEveryMs = 200
const barWidth = 30

const percentOf = (done: number, of: number) => (of === 0 ? 100 : Math.floor((100 * done) / of))

/**
 * Formats a progress bar. Its last character returns the cursor to the start of the line, so the next output overwrites the bar. When
 * all work is done, returns the control sequence that clears the line.
 */
const bar = (done: number, of: number, what: string) => {
  const filled = of === 0 ? barWidth : Math.floor((barWidth * done) / of)
  const text = `[${"#".repeat(filled)}${"-".repeat(barWidth - filled)}] ${percentOf(done, of)} %  ${done} of ${of} ${what}`
  return done >= of ? "\u{1b}[2K" : `\u{1b}[2K${text}\r`
}

const draw = (text: string) => Effect.sync(() => void process.stderr.write(text))

/** Creates a function that shows how many of all items are done, at most once per interval. `what` names the items. */
export const make = Effect.fnUntraced(function* (what: string, isTerminal = process.stderr.isTTY) {
  const last = yield* Ref.make(yield* Clock.currentTimeMillis)
  return Effect.fnUntraced(function* (done: number, of: number) {
    const now = yield* Clock.currentTimeMillis
    const isLast = isTerminal && done >= of
    if (!isLast && now - (yield* Ref.get(last)) < (isTerminal ? barEveryMs : lineEveryMs)) return
    yield* Ref.set(last, now)
    yield* isTerminal ? draw(bar(done, of, what)) : Console.error(`${done} of ${of} ${what} (${percentOf(done, of)} %)`)
  })
})

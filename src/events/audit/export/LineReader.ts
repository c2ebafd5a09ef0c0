/** Reads a text file line by line, as fast as it is asked for lines, and to the byte: a line has nothing but its one usual end. */
import { Effect, FileSystem, type PlatformError, Pull, type Scope, Stream } from "effect"

/** The next line without its end; null after the last one. */
export type NextLine = Effect.Effect<string | null, PlatformError.PlatformError>

/** A longer line is none that an export has; what there is of it is one line. */
const maxLine = 16_777_216

/** No line of an export reads like these. */
const notUtf8 = "the rest is not UTF-8"
const unended = " (without its end of line)"

/**
 * A file that is not there has no lines. A byte order mark belongs to the first line, and another line end than `end` to its line. The last line
 * without an end, and bytes that are no UTF-8, become lines that are none of an export.
 */
export const open = Effect.fnUntraced(function* (
  file: string,
  end = "\n"
): Effect.fn.Return<NextLine, PlatformError.PlatformError, FileSystem.FileSystem | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(file))) return Effect.succeed(null)
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  const pull = yield* Stream.toPull(fs.stream(file, { chunkSize: 262_144 }))
  let lines: ReadonlyArray<string> = []
  let next = 0
  let rest = ""
  let isOver = false

  const take = (text: string) => {
    const parts = (rest + text).split(end)
    rest = parts.pop() ?? ""
    if (rest.length <= maxLine) return parts
    const long = rest
    rest = ""
    return [...parts, long]
  }

  const finish = (text: string) => {
    isOver = true
    const parts = take(text)
    return rest === "" ? parts : [...parts, rest + unended]
  }

  const decode = (bytes?: Uint8Array) => Effect.option(Effect.try(() => decoder.decode(bytes, { stream: bytes !== undefined })))

  const more = pull.pipe(
    Effect.flatMap((chunks) => Effect.forEach(chunks, (bytes) => decode(bytes))),
    Effect.map((texts) =>
      texts.flatMap((text) => (isOver ? [] : text._tag === "Some" ? take(text.value) : finish(`${end}${notUtf8}${end}`)))
    ),
    Pull.catchDone(() => Effect.map(decode(), (text) => finish(text._tag === "Some" ? text.value : `${end}${notUtf8}${end}`)))
  )

  return Effect.gen(function* () {
    while (next >= lines.length) {
      if (isOver) return null
      lines = yield* more
      next = 0
    }
    next += 1
    return lines[next - 1] ?? null
  })
})

/**
 * Reads lines that begin with a position, by their position: the line of the one that is asked for, or null if it has none. Positions are
 * asked for in order; `stray` hears of lines that none was asked for.
 */
export const byPosition = (next: NextLine, stray: (line: string) => void) => {
  let ahead: string | null = null
  const positionOf = (line: string) => Number(/^\d+/u.exec(line)?.[0] ?? -1)
  return {
    take: Effect.fnUntraced(function* (position: number) {
      for (let line = ahead ?? (yield* next); line !== null; line = yield* next) {
        ahead = line
        if (positionOf(line) > position) return null
        ahead = null
        if (positionOf(line) === position) return line
        stray(line)
      }
      return null
    }),
    /** The lines that are left are strays. */
    finish: Effect.gen(function* () {
      for (let line = ahead ?? (yield* next); line !== null; line = yield* next) stray(line)
      ahead = null
    })
  }
}

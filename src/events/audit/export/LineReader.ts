/** Reads a text file line by line, on demand and byte-exact: only the expected line end separates lines. */
import { Effect, FileSystem, type PlatformError, Pull, type Scope, Stream } from "effect"

/** Returns the next line without its end; null after the last one. */
export type NextLine = Effect.Effect<string | null, PlatformError.PlatformError>

/** Maximum length of a line, which no export exceeds. The beginning of a longer line is returned as a line. */
const maxLine = 16_777_216

/** Texts that replace or complete a malformed line. No export contains them. */
const notUtf8 = "the rest is not UTF-8"
const unended = " (without its end of line)"

/**
 * Opens a file and returns a function that reads the next line. A missing file has no lines. A byte order mark belongs to the first
 * line, and a line end other than `end` belongs to its line. An unterminated last line, or bytes that are not UTF-8, become lines
 * that no export contains.
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
 * Reads lines that begin with a position. `take` returns the line of a position, or null. It must be called in ascending order.
 * `stray` receives the lines of other positions.
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
    /** Passes the remaining lines to `stray`. */
    finish: Effect.gen(function* () {
      for (let line = ahead ?? (yield* next); line !== null; line = yield* next) stray(line)
      ahead = null
    })
  }
}

/** Reads a text file line by line, on demand and byte-exact: only the expected line end separates lines. */
import { Effect, FileSystem, type PlatformError, Pull, type Scope, Stream } from "effect"

/** Returns the next line without its end; null after the last one. */
export type NextLine = Effect.Effect<string | null, PlatformError.PlatformError>

/**
 * Maximum length of a line. No line of an export is longer. The reader splits a longer line, so that it does not exhaust the
 * memory.
 */
const maxLine = 16_777_216

/**
 * Texts that the reader returns for malformed content: instead of bytes that are not UTF-8, or at the end of an unterminated last
 * line. No export contains these texts, so a comparison with the expected line fails.
 */
const notUtf8 = "the rest is not UTF-8"
const unended = " (without its end of line)"

/**
 * Opens a file and returns a function that reads the next line. A missing file has no lines. Only `end` separates lines. A byte
 * order mark and other line ends are part of their line.
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
 * Reads a file in which each line begins with a position. `take` returns the line of a position; null if the file has no line for
 * it. The caller must call `take` in ascending order of positions. `stray` receives every line whose position was not requested.
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
    /** Reads the rest of the file, and passes each line to `stray`. */
    finish: Effect.gen(function* () {
      for (let line = ahead ?? (yield* next); line !== null; line = yield* next) stray(line)
      ahead = null
    })
  }
}

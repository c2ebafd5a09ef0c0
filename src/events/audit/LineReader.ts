/** Reads a text file line by line, as fast as it is asked for lines. */
import { Effect, FileSystem, Option, type PlatformError, Pull, type Scope, Stream } from "effect"

/** The next line without its end; null after the last one. */
export type NextLine = Effect.Effect<string | null, PlatformError.PlatformError>

/** A file that is not there has no lines. */
export const open = Effect.fnUntraced(function* (
  file: string
): Effect.fn.Return<NextLine, PlatformError.PlatformError, FileSystem.FileSystem | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(file))) return Effect.succeed(null)
  const pull = yield* Stream.toPull(fs.stream(file, { chunkSize: 262_144 }).pipe(Stream.decodeText(), Stream.splitLines))
  const more = pull.pipe(
    Effect.map(Option.some),
    Pull.catchDone(() => Effect.succeedNone)
  )
  let lines: ReadonlyArray<string> = []
  let next = 0
  return Effect.suspend(() => {
    const line = lines[next]
    if (line !== undefined) {
      next += 1
      return Effect.succeed(line)
    }
    return Effect.map(more, (read) => {
      lines = Option.getOrElse(read, () => [])
      next = 1
      return lines[0] ?? null
    })
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

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

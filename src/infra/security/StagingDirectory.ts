/**
 * A directory for content under construction. The caller renames the content when it is complete, so a killed process leaves no
 * incomplete content under the final name.
 */
import { Clock, Effect, FileSystem, Option, Path } from "effect"

/** Age at which a staging directory counts as abandoned. A program that writes to it runs for at most 2 minutes. */
const maxAgeMs = 600_000

/** Creates an empty directory of mode 700, which is removed when the scope closes. Also removes abandoned directories. */
export const make = Effect.fnUntraced(function* (directory: string, prefix: string) {
  const fs = yield* FileSystem.FileSystem
  yield* removeAbandoned(directory, prefix)
  return yield* Effect.acquireRelease(
    fs.makeTempDirectory({ directory, prefix }),
    // A directory that cannot be removed now is removed later as abandoned.
    (draft) => Effect.ignore(fs.remove(draft, { recursive: true, force: true }))
  )
})

const removeAbandoned = Effect.fnUntraced(function* (directory: string, prefix: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const now = yield* Clock.currentTimeMillis
  for (const entry of yield* fs.readDirectory(directory)) {
    if (!entry.startsWith(prefix)) continue
    const draft = path.join(directory, entry)
    // Ignores a directory that another process has just removed or renamed.
    const info = yield* Effect.option(fs.stat(draft))
    const changed = Option.flatMap(info, ({ mtime }) => mtime)
    if (Option.exists(changed, (time) => now - time.getTime() > maxAgeMs)) {
      yield* fs.remove(draft, { recursive: true, force: true })
    }
  }
})

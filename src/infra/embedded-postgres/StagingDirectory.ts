/** A folder in which something is made aside, to be renamed when it is whole: who is killed half way leaves nothing misleading. */
import { Clock, Effect, FileSystem, Option, Path } from "effect"

/** Nobody works longer than this on a draft: what runs in one is bounded to 2 minutes. */
const maxAgeMs = 600_000

/** Makes an empty draft of mode 700 in `directory`, gone when the scope closes, and removes the drafts that were abandoned. */
export const make = Effect.fnUntraced(function* (directory: string, prefix: string) {
  const fs = yield* FileSystem.FileSystem
  yield* removeAbandoned(directory, prefix)
  return yield* Effect.acquireRelease(
    fs.makeTempDirectory({ directory, prefix }),
    // What cannot be removed now is removed as abandoned later.
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
    // Its maker may be removing or renaming it at this moment.
    const found = yield* Effect.option(fs.stat(draft))
    const changed = Option.flatMap(found, ({ mtime }) => mtime)
    if (Option.exists(changed, (time) => now - time.getTime() > maxAgeMs)) {
      yield* fs.remove(draft, { recursive: true, force: true })
    }
  }
})

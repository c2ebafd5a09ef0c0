/** A file that is whole on the disk before it gets its name: a machine that loses power must not come back with half of it, or with none. */
import { Effect, type FileSystem } from "effect"

/** Writes `text` beside where it will be, in a file of its own that goes with the scope, and gives back its path: to rename, or to link. */
export const writeDraft = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  directory: string,
  prefix: string,
  text: string
) {
  const path = yield* fs.makeTempFileScoped({ directory, prefix })
  yield* fs.chmod(path, 0o600)
  const file = yield* fs.open(path, { flag: "w" })
  yield* file.writeAll(new TextEncoder().encode(text))
  yield* file.sync
  return path
})

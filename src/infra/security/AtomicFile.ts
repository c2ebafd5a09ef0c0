/**
 * Writes files of mode 600 atomically: they are complete on disk before they get their name, so a power failure leaves the old or
 * the new file. Several processes may write the same file, because each has its own draft.
 */
import { Effect, FileSystem, Path, type PlatformError } from "effect"
import * as StagingDirectory from "#infra/security/StagingDirectory.ts"

export const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  const staging = (folder: string) =>
    StagingDirectory.make(folder, ".draft-").pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.provideService(Path.Path, path)
    )

  /**
   * Writes the content to a temporary file in a folder beside `file` and syncs it to disk. The folder is removed when the scope
   * closes, or later if the process is killed.
   */
  const writeDraft = Effect.fnUntraced(function* (file: string, content: string | Uint8Array) {
    const draft = path.join(yield* staging(path.dirname(file)), path.basename(file))
    const handle = yield* fs.open(draft, { flag: "wx", mode: 0o600 })
    yield* handle.writeAll(typeof content === "string" ? new TextEncoder().encode(content) : content)
    yield* handle.sync
    return draft
  })

  const inFolder = Effect.fnUntraced(function* (
    file: string,
    content: string | Uint8Array,
    put: (draft: string) => Effect.Effect<void, PlatformError.PlatformError>
  ) {
    yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
    yield* put(yield* writeDraft(file, content))
  }, Effect.scoped)

  return {
    /** Creates or replaces a file. Creates a missing folder with mode 700. */
    replace: (file: string, content: string | Uint8Array) => inFolder(file, content, (draft) => fs.rename(draft, file)),
    /**
     * Creates a file, or keeps the existing file. If several processes create the file at the same time, all of them keep the
     * file of the first process.
     */
    create: (file: string, content: string | Uint8Array) =>
      inFolder(file, content, (draft) => Effect.catchIf(fs.link(draft, file), isThereAlready, () => Effect.void))
  }
})

const isThereAlready = (error: PlatformError.PlatformError) => error.reason._tag === "AlreadyExists"

/**
 * Files of mode 600 that are complete on the disk before they get their name: a power failure leaves the old file or the new one, never a
 * half or an empty one. Several processes may write the same file, because each has a draft of its own.
 */
import { Effect, FileSystem, Path, type PlatformError } from "effect"

export const make = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  /** A synced draft beside `file`; it is removed with the scope. */
  const writeDraft = Effect.fnUntraced(function* (file: string, content: string | Uint8Array) {
    const draft = yield* fs.makeTempFileScoped({ directory: path.dirname(file), prefix: ".draft-" })
    yield* fs.chmod(draft, 0o600)
    const handle = yield* fs.open(draft, { flag: "w" })
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
    /** Writes a file, and replaces an older one. A missing folder is made with mode 700. */
    replace: (file: string, content: string | Uint8Array) => inFolder(file, content, (draft) => fs.rename(draft, file)),
    /** The same, but leaves a file that exists: of several processes that create it at once, one succeeds and the others keep its file. */
    create: (file: string, content: string | Uint8Array) =>
      inFolder(file, content, (draft) => Effect.catchIf(fs.link(draft, file), isThereAlready, () => Effect.void))
  }
})

const isThereAlready = (error: PlatformError.PlatformError) => error.reason._tag === "AlreadyExists"

/** Reads the files of an export byte-exact, so that every change by an editor is detected. */
import { Effect, FileSystem } from "effect"

const lenient = new TextDecoder("utf-8", { ignoreBOM: true })
const utf8 = new TextEncoder()

const isSame = (one: Uint8Array, other: Uint8Array) =>
  one.length === other.length && one.every((byte, index) => byte === other[index])

/** Returns the text of a file, including a byte order mark; null if it is not UTF-8. */
export const exactText = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const bytes = yield* fs.readFile(file)
  const text = lenient.decode(bytes)
  return isSame(utf8.encode(text), bytes) ? text : null
})

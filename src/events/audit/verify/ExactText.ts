/** Reads the files of an export to the byte: nothing that editors add, drop or convert is passed over. */
import { Effect, FileSystem } from "effect"

const lenient = new TextDecoder("utf-8", { ignoreBOM: true })
const utf8 = new TextEncoder()

const isSame = (one: Uint8Array, other: Uint8Array) =>
  one.length === other.length && one.every((byte, index) => byte === other[index])

/** The text of a file, a byte order mark included; null if it is no UTF-8. */
export const exactText = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const bytes = yield* fs.readFile(file)
  const text = lenient.decode(bytes)
  return isSame(utf8.encode(text), bytes) ? text : null
})

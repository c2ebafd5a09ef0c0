/** Cursors: the position where a list continues, signed, so that clients cannot build or change one. */
import { Effect, Schema } from "effect"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"

/** This service did not issue the cursor for this list. */
export class InvalidCursor extends Schema.TaggedError<InvalidCursor>()("InvalidCursor", {}) {
  override get message() {
    return "cursor: must be the next_cursor of the previous page of the same list"
  }
}

const form = /^([0-9a-z]{1,11})\.([0-9a-f]{32})$/u

/** Encodes and decodes the cursors of one list; `list` identifies the list, its owner and its filters. */
export const make = Effect.map(KeyedHash, (hash) => {
  const signatureOf = (list: string, position: string) => hash.of("cursor", `${list}/${position}`).slice(0, 32)
  return {
    encode: (list: string, position: number): string => {
      const text = position.toString(36)
      return `${text}.${signatureOf(list, text)}`
    },
    decode: (list: string, cursor: string): Effect.Effect<number, InvalidCursor> => {
      const [, position, signature] = form.exec(cursor) ?? []
      return position !== undefined && signature === signatureOf(list, position)
        ? Effect.succeed(Number.parseInt(position, 36))
        : Effect.fail(new InvalidCursor({}))
    }
  }
})

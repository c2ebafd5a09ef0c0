/** Encodes and decodes cursors. A cursor is the position where the next page starts, signed so that clients cannot build or change it. */
import { Effect, Schema } from "effect"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"

/** The service did not issue this cursor for this list. */
export class InvalidCursor extends Schema.TaggedError<InvalidCursor>()("InvalidCursor", { field: Schema.String }) {
  override get message() {
    return "Expected the next_cursor of the previous page of the same list"
  }
}

const form = /^([0-9a-z]{1,11})\.([0-9a-f]{32})$/u

/**
 * Creates the functions that encode and decode cursors. `list` is the name of a list, and includes its owner and filters. A cursor is
 * valid only for the list for which it was encoded.
 */
export const make = Effect.map(KeyedHash, (hash) => {
  const signatureOf = (list: string, position: string) => hash.of("cursor", `${list}/${position}`).slice(0, 32)
  return {
    encode: (list: string, position: number): string => {
      const text = position.toString(36)
      return `${text}.${signatureOf(list, text)}`
    },
    /** `field` is the name of the parameter that has the cursor. */
    decode: (list: string, cursor: string, field = "cursor"): Effect.Effect<number, InvalidCursor> => {
      const [, position, signature] = form.exec(cursor) ?? []
      return position !== undefined && signature === signatureOf(list, position)
        ? Effect.succeed(Number.parseInt(position, 36))
        : Effect.fail(new InvalidCursor({ field }))
    }
  }
})

/** Reads the header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07, read 2026-11). */
import { Option, Schema } from "effect"

const longest = 255

/**
 * Returns the value of the header; None if it is invalid. The draft requires quotation marks around the value (a String of RFC 8941),
 * but most clients omit them, so both forms are accepted. A valid value has `shortest` to 255 characters of printable ASCII.
 */
export const parse = (header: string, shortest = 1): Option.Option<string> => {
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/u.exec(header)?.[1]?.replace(/\\(.)/gu, "$1")
  const key = quoted ?? header
  return /^[!-~](?:[ -~]*[!-~])?$/u.test(key) && key.length >= shortest && key.length <= longest
    ? Option.some(key)
    : Option.none()
}

/** Returns the invalid field for a header that `parse` rejects. */
export const problem = (shortest = 1, more = "") => [
  { field: "Idempotency-Key", message: `Expected ${shortest} to ${longest} printable ASCII characters${more}` }
]

/** Returns the response header that marks a repeated answer. */
export const replayed = (isReplayed: boolean): Readonly<Record<string, string>> =>
  isReplayed ? { "idempotent-replayed": "true" } : {}

/** The schema of the header in the declarations of endpoints. */
export const header = Schema.optionalKey(
  Schema.String.annotate({
    description: `Makes the request safe to repeat (draft-ietf-httpapi-idempotency-key-header-07). Send 1 to ${longest} printable ASCII characters that you use for no other request. A repetition with the same value gets the same answer and is not charged again`,
    examples: ["8e03978e-40d5-43dd-bc93-6894a57f9324"]
  })
)

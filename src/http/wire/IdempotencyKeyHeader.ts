/** The Idempotency-Key of a request (draft-ietf-httpapi-idempotency-key-header-07, read 2026-11). */
import { Option, Schema } from "effect"

const longest = 255

/**
 * The key: a string of structured fields in quotation marks, or the same without them, as most clients send it. None if it is unusable, or has fewer
 * characters than `shortest`.
 */
export const parse = (header: string, shortest = 1): Option.Option<string> => {
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/u.exec(header)?.[1]?.replace(/\\(.)/gu, "$1")
  const key = quoted ?? header
  return /^[!-~](?:[ -~]*[!-~])?$/u.test(key) && key.length >= shortest && key.length <= longest
    ? Option.some(key)
    : Option.none()
}

/** The error for an unusable key. */
export const problem = (shortest = 1) => [
  { field: "Idempotency-Key", message: `Expected ${shortest} to ${longest} printable characters of ASCII` }
]

/** Marks the answer that the same request got before. */
export const replayed = (isReplayed: boolean): Readonly<Record<string, string>> =>
  isReplayed ? { "idempotent-replayed": "true" } : {}

/** The header in the OpenAPI document. */
export const header = Schema.optionalKey(
  Schema.String.annotate({
    description: `Makes the request safe to repeat (draft-ietf-httpapi-idempotency-key-header-07): 1 to ${longest} characters of ASCII that you never use for another request. The same request gets the same answer and is charged once`,
    examples: ["8e03978e-40d5-43dd-bc93-6894a57f9324"]
  })
)

/**
 * Canonical JSON as RFC 8785 (JSON Canonicalization Scheme) defines it, read 2026-11-21: one byte sequence for one
 * value.
 *
 * Its rules for strings and numbers are those of ECMAScript's JSON.stringify; on top come keys sorted by UTF-16 code
 * units, and a refusal of what JSON.stringify would quietly change (NaN, infinities, lone surrogates, undefined, dates
 * and other objects of a class).
 */
import { Result, Schema } from "effect"

/** The value at `path` (object keys and array indexes from the top) is none that RFC 8785 can write. */
export class NotCanonicalJson extends Schema.TaggedError<NotCanonicalJson>()("NotCanonicalJson", {
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  reason: Schema.String
}) {
  override get message() {
    return `No canonical JSON at /${this.path.join("/")}: ${this.reason}`
  }
}

/** Deeper nesting is refused, so that neither a cycle nor hostile input can exhaust the stack. */
const maxDepth = 500

interface Fault {
  readonly path: ReadonlyArray<string | number>
  readonly reason: string
}

/** The canonical text of a JSON value. Its UTF-8 form is what is hashed. */
export const encode = (value: unknown): Result.Result<string, NotCanonicalJson> => {
  const written = write(value, 0)
  return typeof written === "string" ? Result.succeed(written) : Result.fail(new NotCanonicalJson(written))
}

/** The same for JSON of our own schemas: what has no canonical form is a defect of ours. */
export const encodeOwn = (value: Schema.Json): string => Result.getOrThrow(encode(value))

const write = (value: unknown, depth: number): string | Fault => {
  if (typeof value === "string") return writeString(value)
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : fault(`${value} is not a JSON number`)
  if (typeof value === "boolean") return value ? "true" : "false"
  if (value === null) return "null"
  if (depth === maxDepth) return fault(`nested more than ${maxDepth} deep`)
  if (Array.isArray(value)) return writeArray(value, depth + 1)
  if (isPlainObject(value)) return writeObject(value, depth + 1)
  return fault(typeof value === "object" ? "an object of a class is not JSON" : `${typeof value} is not JSON`)
}

const writeString = (value: string): string | Fault =>
  value.isWellFormed() ? JSON.stringify(value) : fault("a lone surrogate has no UTF-8 form")

const writeArray = (values: ReadonlyArray<unknown>, depth: number): string | Fault => {
  let text = "["
  for (let i = 0; i < values.length; i += 1) {
    const written = write(values[i], depth)
    if (typeof written !== "string") return within(i, written)
    text += i === 0 ? written : `,${written}`
  }
  return `${text}]`
}

const writeObject = (object: Readonly<Record<string, unknown>>, depth: number): string | Fault => {
  let text = "{"
  // The default order of toSorted() is that of UTF-16 code units, as the RFC demands.
  for (const key of Object.keys(object).toSorted()) {
    const name = writeString(key)
    if (typeof name !== "string") return within(key.toWellFormed(), name)
    const written = write(object[key], depth)
    if (typeof written !== "string") return within(key, written)
    text += text.length === 1 ? `${name}:${written}` : `,${name}:${written}`
  }
  return `${text}}`
}

const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const fault = (reason: string): Fault => ({ path: [], reason })

const within = (step: string | number, { path, reason }: Fault): Fault => ({ path: [step, ...path], reason })

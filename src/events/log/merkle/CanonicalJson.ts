/**
 * Canonical JSON as RFC 8785 (JSON Canonicalization Scheme, read 2026-11-21) defines it: one byte sequence for one value.
 *
 * Strings and numbers are written as by JSON.stringify, and keys are sorted by UTF-16 code units. Values that JSON.stringify would
 * change silently (NaN, infinities, lone surrogates, undefined, dates, class instances) are errors.
 */
import { Result, Schema } from "effect"

/** The value at `path` (object keys and array indexes from the root) has no form in RFC 8785. */
export class NotCanonicalJson extends Schema.TaggedError<NotCanonicalJson>()("NotCanonicalJson", {
  path: Schema.Array(Schema.Union([Schema.String, Schema.Int])),
  reason: Schema.String
}) {
  override get message() {
    return `The value has no canonical JSON form at /${this.path.join("/")}: ${this.reason}`
  }
}

/** Maximum depth of nesting. A cycle or hostile input would otherwise exhaust the stack. */
const maxDepth = 500

interface Fault {
  readonly path: ReadonlyArray<string | number>
  readonly reason: string
}

/** Returns the canonical text of a JSON value. Digests are computed over its UTF-8 bytes. */
export const encode = (value: unknown): Result.Result<string, NotCanonicalJson> => {
  const written = write(value, 0)
  return typeof written === "string" ? Result.succeed(written) : Result.fail(new NotCanonicalJson(written))
}

/** Returns the canonical text of a value that a schema of this service encoded. A value without canonical form is a defect. */
export const encodeOwn = (value: Schema.Json): string => Result.getOrThrow(encode(value))

const write = (value: unknown, depth: number): string | Fault => {
  if (typeof value === "string") return writeString(value)
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : fault(`${value} is not a JSON number`)
  if (typeof value === "boolean") return value ? "true" : "false"
  if (value === null) return "null"
  if (depth === maxDepth) return fault(`nested more than ${maxDepth} levels deep`)
  if (Array.isArray(value)) return writeArray(value, depth + 1)
  if (isPlainObject(value)) return writeObject(value, depth + 1)
  return fault(typeof value === "object" ? "a class instance is not JSON" : `${typeof value} is not JSON`)
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
  // toSorted() compares UTF-16 code units by default, as the RFC requires.
  for (const key of Object.keys(object).toSorted()) {
    const name = writeName(key)
    if (typeof name !== "string") return within(key.toWellFormed(), name)
    const written = write(object[key], depth)
    if (typeof written !== "string") return within(key, written)
    text += text.length === 1 ? `${name}:${written}` : `,${name}:${written}`
  }
  return `${text}}`
}

/** Cache of the JSON texts of the first 1,000 object keys. Documents have few different keys, so it halves the time of encoding. */
const names = new Map<string, string>()
const maxNames = 1_000
const maxNameLength = 100

const writeName = (key: string): string | Fault => {
  const known = names.get(key)
  if (known !== undefined) return known
  const written = writeString(key)
  if (typeof written === "string" && names.size < maxNames && key.length <= maxNameLength) names.set(key, written)
  return written
}

const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

const fault = (reason: string): Fault => ({ path: [], reason })

const within = (step: string | number, { path, reason }: Fault): Fault => ({ path: [step, ...path], reason })

/**
 * Removes secrets and personal data from logs and traces. Known secrets are removed anywhere in a text; keys, tokens, addresses
 * and VAT IDs are recognised by their form. Prefers false positives to leaks.
 */
import { Predicate, Redacted } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"

export interface Redaction {
  /** Returns the text without secrets and personal data. */
  readonly text: (text: string) => string
  /** Returns the value as redacted plain JSON: strings by `text`, and fields by name. Bounded in depth and size. */
  readonly value: (value: unknown) => unknown
}

/** Limits of a redacted value: its depth, its number of entries and the length of a text. The excess is omitted. */
const maxDepth = 5
const maxEntries = 50
const maxLength = 4_000

type Rule = readonly [pattern: RegExp, replacement: string]

const prefixes = [...memberStates.keys(), "GR"].join("|")
/** Matches a prefix in upper case and 6 to 12 characters, with or without separators, as people type VAT IDs. */
const vatId = new RegExp(`(?<![A-Za-z0-9])(?:${prefixes})(?:[ .-]?[A-Z0-9+*]){6,12}(?![A-Za-z0-9])`, "gu")
/**
 * Matches a VAT ID in lower case, or a whole UUID, which `withoutVatIds` keeps. Operators search logs for UUIDs, and 1 % of all
 * UUIDs end like a VAT ID.
 */
const lowerCaseVatId = new RegExp(
  `\\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\\b|(?<![A-Za-z0-9])(?:${prefixes.toLowerCase()})[a-z0-9+*]{6,12}(?![A-Za-z0-9])`,
  "gu"
)
const uuidLength = 36
/** Redacts a match, but keeps a UUID, and a match with fewer than six digits, which is an ordinary word. */
const withoutVatIds = (found: string) =>
  found.length < uuidLength && (found.match(/\d/gu)?.length ?? 0) >= 6 ? "[vat id]" : found

const octet = "(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)"
const ipv4 = new RegExp(`(?<![\\d.])(?!127\\.|0\\.0\\.0\\.0)(?:${octet}\\.){3}${octet}(?![\\d.])`, "gu")
const ipv6 =
  /(?<![0-9a-z:])(?=[0-9a-f:]*\d)(?!::1(?![0-9a-f:]))(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){1,7}:(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?|::[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})(?![0-9a-z:])/giu

/**
 * A quantifier before a required part has an upper bound, which keeps backtracking cheap: a text of 4,000 characters takes a few
 * milliseconds at worst.
 */
const rules: ReadonlyArray<Rule> = [
  [/svc_live_\w+/gu, "[api key]"],
  [/svc_audit_\w+/gu, "[auditor's token]"],
  [/\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?/gu, "[token]"],
  [/\b(bearer|basic)\s+[\w.~+/=-]+/giu, "$1 [secret]"],
  [/(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]{1,300}@/giu, "$1[secret]@"],
  [/\b[0-9a-f]{64}\b/giu, "[hash]"],
  // Redacts the caller's input in paths and queries of the service and the sources. Keeps route templates and names of routes.
  [
    /(\/v1\/(?:validate|qualified-confirmations|receipt-links|keys|auth\/verify[\w-]*)\/)(?!\{|rotate\b|self\b)[^\s"'<>]+/gu,
    "$1[redacted]"
  ],
  [/(\/ms\/\w\w\/vat\/)[^\s"'<>]+/gu, "$1[redacted]"],
  [/([?&](?:[\w.-]+)=)[^\s&"'<>]*/gu, "$1[redacted]"],
  [/\b(password|passwd|secret|token|authorization|cookie|api[_-]?key)(["']?\s*[=:]\s*["']?)[^\s"',;}]+/giu, "$1$2[redacted]"],
  [/(?<![^\s<>"'(),:;@[\]=/])[^\s<>"'(),:;@[\]=/]{1,100}@[^\s<>"'(),:;@[\]]{1,200}/giu, "[email]"],
  [ipv4, "[ip]"],
  [ipv6, "[ip]"]
]

/** Names of fields with secrets or personal data. Such fields are redacted whatever their text looks like. */
const sensitiveNames =
  /password|secret|token|cookie|authori[sz]ation|api_?key|e?mail$|vat_?(?:id|number)|company|^reference$|address(?!_family)|client_?ip|user_?agent|params|request_?body/iu

export const make = (secrets: ReadonlyArray<Redacted.Redacted>): Redaction => {
  // Ignores secrets with fewer than 6 characters, because they would match ordinary words.
  const known = secrets.map((secret) => Redacted.value(secret)).filter((secret) => secret.length >= 6)

  const text = (raw: string): string => {
    let redacted = raw.length > maxLength ? `${raw.slice(0, maxLength)}…` : raw
    for (const secret of known) if (redacted.includes(secret)) redacted = redacted.replaceAll(secret, "[secret]")
    for (const [pattern, replacement] of rules) redacted = redacted.replace(pattern, replacement)
    return redacted.replace(vatId, withoutVatIds).replace(lowerCaseVatId, withoutVatIds)
  }

  const plain = (value: unknown, depth: number): unknown => {
    if (typeof value === "string") return text(value)
    if (typeof value === "bigint") return value.toString()
    if (typeof value !== "object" || value === null) return typeof value === "function" ? "[function]" : value
    if (Redacted.isRedacted(value)) return "[secret]"
    if (Predicate.isError(value)) return text(`${value.name}: ${value.message}`)
    if (depth >= maxDepth) return "…"
    if (Array.isArray(value)) return value.slice(0, maxEntries).map((entry) => plain(entry, depth + 1))
    const fields: Record<string, unknown> = {}
    for (const [name, field] of Object.entries(value).slice(0, maxEntries)) {
      fields[text(name)] =
        sensitiveNames.test(name) && typeof field !== "number" && typeof field !== "boolean"
          ? "[redacted]"
          : plain(field, depth + 1)
    }
    return fields
  }

  return { text, value: (value) => plain(value, 0) }
}

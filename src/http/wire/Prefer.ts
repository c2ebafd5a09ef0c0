/**
 * Reads the header Prefer (RFC 7240, read 2026-11). `respond-async` means that the client accepts a response without the answer.
 * `wait=n` sets the number of seconds that the service waits for the answer first.
 */
import { Duration, Option } from "effect"

/** The preferences of a request. `wait` is zero if the client sent none. */
export interface Preferences {
  readonly isAsync: boolean
  readonly wait: Duration.Duration
}

/** Returns the preferences in a header; None if its `wait` is no whole number of seconds from 0 to `longestSeconds`. */
export const parse = (header: string | undefined, longestSeconds: number): Option.Option<Preferences> => {
  const preferences = (header ?? "").split(",").map((part) => (part.split(";", 1)[0] ?? "").trim().toLowerCase())
  const [wait = "0"] = preferences.flatMap((preference) => /^wait\s*(?:=\s*"?([^"]*)"?)?$/u.exec(preference)?.slice(1) ?? [])
  const seconds = /^\d{1,9}$/u.test(wait) ? Number(wait) : Number.POSITIVE_INFINITY
  if (seconds > longestSeconds) return Option.none()
  return Option.some({ isAsync: preferences.includes("respond-async"), wait: Duration.seconds(seconds) })
}

/** Returns the invalid field for a header that `parse` rejects. */
export const problem = (longestSeconds: number) => [
  { field: "Prefer", message: `Expected wait to be a whole number of seconds from 0 to ${longestSeconds}` }
]

/** Returns the header `Preference-Applied` for applied preferences; no header if there are none. */
export const applied = ({ isAsync, wait }: Preferences) => {
  const names = [
    ...(isAsync ? ["respond-async"] : []),
    ...(Duration.isPositive(wait) ? [`wait=${Duration.toSeconds(wait)}`] : [])
  ]
  return names.length === 0 ? {} : { "preference-applied": names.join(", ") }
}

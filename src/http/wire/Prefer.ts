/**
 * Reads the header Prefer (RFC 7240, read 2026-11). `respond-async` means that the client accepts a response without the answer.
 * `wait=n` sets the number of seconds that the service waits for the answer first.
 */
import { Duration } from "effect"

/** The preferences of a request. `wait` is zero if the client sent none. */
export interface Preferences {
  readonly isAsync: boolean
  readonly wait: Duration.Duration
}

/** Returns the preferences in a header. A longer wait than `longestSeconds` is shortened. */
export const parse = (header: string | undefined, longestSeconds: number): Preferences => {
  const preferences = (header ?? "").split(",").map((part) => (part.split(";", 1)[0] ?? "").trim().toLowerCase())
  const seconds = preferences.flatMap((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/u.exec(preference)?.slice(1) ?? [])
  return {
    isAsync: preferences.includes("respond-async"),
    wait: Duration.seconds(Math.min(Number(seconds[0] ?? 0), longestSeconds))
  }
}

/** Returns the header `Preference-Applied` for applied preferences; no header if there are none. */
export const applied = ({ isAsync, wait }: Preferences) => {
  const names = [
    ...(isAsync ? ["respond-async"] : []),
    ...(Duration.isPositive(wait) ? [`wait=${Duration.toSeconds(wait)}`] : [])
  ]
  return names.length === 0 ? {} : { "preference-applied": names.join(", ") }
}

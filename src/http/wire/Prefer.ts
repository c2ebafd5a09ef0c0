/**
 * Reads the header Prefer (RFC 7240, read 2026-11). `respond-async` means that the client accepts a response without the answer.
 * `wait=n` sets the number of seconds that the service waits for the answer first.
 */
import { Duration } from "effect"

/**
 * Returns how long the service waits for an answer before it responds without the answer. Returns null if the client does not accept
 * such a response.
 */
export const asyncWait = (header: string | undefined, longestSeconds: number): Duration.Duration | null => {
  const preferences = (header ?? "").split(",").map((part) => (part.split(";", 1)[0] ?? "").trim().toLowerCase())
  if (!preferences.includes("respond-async")) return null
  const seconds = preferences.flatMap((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/u.exec(preference)?.slice(1) ?? [])
  return Duration.seconds(Math.min(Number(seconds[0] ?? 0), longestSeconds))
}

/** Returns the value of `Preference-Applied`. */
export const applied = (wait: Duration.Duration): string =>
  Duration.isPositive(wait) ? `respond-async, wait=${Duration.toSeconds(wait)}` : "respond-async"

/** Preferences of a request (RFC 7240, read 2026-11): whether it may be answered later, and how long it waits. */
import { Duration } from "effect"

/** How long to wait for an answer before accepting the request; null: it must be answered now. */
export const asyncWait = (header: string | undefined, longestSeconds: number): Duration.Duration | null => {
  const preferences = (header ?? "").split(",").map((part) => (part.split(";", 1)[0] ?? "").trim().toLowerCase())
  if (!preferences.includes("respond-async")) return null
  const seconds = preferences.flatMap((preference) => /^wait\s*=\s*"?(\d{1,9})"?$/u.exec(preference)?.slice(1) ?? [])
  return Duration.seconds(Math.min(Number(seconds[0] ?? 0), longestSeconds))
}

/** The applied preferences, for `Preference-Applied`. */
export const applied = (wait: Duration.Duration): string =>
  Duration.isPositive(wait) ? `respond-async, wait=${Duration.toSeconds(wait)}` : "respond-async"

/** How long a stored answer may be served (rules 16, 18). */
import { DateTime, Duration } from "effect"
import { germanDay } from "#domain/text/CalendarDate.ts"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"

/** An answer that confirms a VAT ID is fresh for 24 hours. */
export const validFor = Duration.hours(24)

/**
 * Maximum ages of answers. `valid` and `invalid` apply to fresh answers with that verdict. `stale` applies to answers that are
 * served during an outage. The age of an answer counts from its time by the source's clock (rules 16, 18).
 */
export interface Freshness {
  readonly valid: Duration.Duration
  readonly invalid: Duration.Duration
  readonly stale: Duration.Duration
}

/** The maximum age in seconds that the caller accepts; null without a limit. With 0 no stored answer is served. */
export type MaxAge = number | null

/** Returns true if the answer may be served without a call of a source. */
export const isFresh = (answer: CachedAnswer, { invalid, valid }: Freshness, nowMs: number, maxAge: MaxAge = null): boolean =>
  isYounger(answer, answer.valid ? valid : invalid, nowMs, maxAge)

/** Returns true if the answer may be served during an outage of the sources. */
export const isServableStale = (answer: CachedAnswer, { stale }: Freshness, nowMs: number, maxAge: MaxAge = null): boolean =>
  isYounger(answer, stale, nowMs, maxAge)

/**
 * Maximum time by which a source's clock can be ahead. An answer whose time is further in the future is neither fresh nor stale,
 * so it is not served.
 */
const clockToleranceMs = Duration.toMillis(Duration.minutes(10))

const isYounger = (answer: CachedAnswer, limit: Duration.Duration, nowMs: number, maxAge: MaxAge) => {
  const ageMs = nowMs - DateTime.toEpochMillis(answer.answered_at)
  if (maxAge !== null && (maxAge === 0 || ageMs >= maxAge * 1000)) return false
  return ageMs >= -clockToleranceMs && ageMs < Duration.toMillis(limit) && !hasBecomeValid(answer, nowMs)
}

/** Returns true if the answer says that the VAT ID becomes valid on a later day (evatr-2002), and that day has begun in Germany. */
const hasBecomeValid = ({ answered_at, valid, valid_from = null }: CachedAnswer, nowMs: number) =>
  !valid && valid_from !== null && germanDay(answered_at) < valid_from && valid_from <= germanDay(DateTime.makeUnsafe(nowMs))

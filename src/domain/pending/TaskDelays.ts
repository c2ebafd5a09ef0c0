/** When a pending validation is tried again. */
import { DateTime, Duration } from "effect"

/** Delays after the first four attempts. */
const waits = [Duration.seconds(5), Duration.seconds(30), Duration.minutes(2), Duration.minutes(10)]
/** Delay after the fifth and each later attempt. Also the longest Retry-After of a pending validation. */
export const longestWait = Duration.minutes(30)
/** Delay after an attempt in which every source rejected the question. VIES bans clients that send many such questions. */
const waitAfterRejection = Duration.days(1)

const varied = (wait: Duration.Duration, random: number) => Duration.times(wait, 0.8 + 0.4 * random)

/** Returns the delay after the attempt number `attempts`. `random` (0 to 1) varies it by ±20 %, so that tasks spread out. */
export const retryDelay = (attempts: number, random: number): Duration.Duration =>
  varied(waits[attempts - 1] ?? longestWait, random)

/** Returns the delay after an attempt in which every source rejected the question. */
export const rejectionDelay = (random: number): Duration.Duration => varied(waitAfterRejection, random)

/** The failure that is stored for a task whose key has used up its quota. */
export const quotaFailure = "QUOTA"

/**
 * Returns the delay for a task without quota: until the new quota begins at `periodEnd`. After a change of the plan the queue
 * resumes the task earlier.
 */
export const quotaDelay = (now: DateTime.Utc, periodEnd: DateTime.Utc | null): Duration.Duration =>
  periodEnd === null ? longestWait : DateTime.distance(now, periodEnd)

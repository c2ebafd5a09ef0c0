/** The newest answer of a source per VAT ID, shared by all replicas: a projection of the log, so it survives everything the log does. */
import { Context, DateTime, Duration, type Effect, type Option } from "effect"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type { VatId } from "#domain/VatId.ts"
import type { Answer } from "#domain/Verdict.ts"

/** An answer and the position of the event that holds it. */
export interface StoredAnswer {
  readonly position: number
  readonly answer: Answer
}

export class AnswerCache extends Context.Service<
  AnswerCache,
  {
    readonly newest: (vatId: VatId) => Effect.Effect<Option.Option<StoredAnswer>, StoreUnavailable>
    /** Succeeds if the cache can be read. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/AnswerCache") {}

/** How long an answer may be served. Ages count from the source's own time, not from when it was stored (DECISIONS 19, 20). */
export interface Freshness {
  readonly valid: Duration.Duration
  readonly invalid: Duration.Duration
  readonly stale: Duration.Duration
}

export const isFresh = (answer: Answer, freshness: Freshness, now: DateTime.Utc): boolean =>
  isWithin(spanOf(answer, maxAgeOf(answer, freshness)), DateTime.toEpochMillis(now))

/** Old, but still better than nothing while every source is down. */
export const isServableStale = (answer: Answer, freshness: Freshness, now: DateTime.Utc): boolean =>
  isWithin(spanOf(answer, freshness.stale), DateTime.toEpochMillis(now))

/** When an answer is fresh: from the first to before the second, in milliseconds since 1970. */
export interface Span {
  readonly from: number
  readonly until: number
}

export const freshSpan = (answer: Answer, freshness: Freshness): Span => spanOf(answer, maxAgeOf(answer, freshness))

export const isWithin = ({ from, until }: Span, nowMs: number): boolean => nowMs >= from && nowMs < until

const maxAgeOf = (answer: Answer, freshness: Freshness) => (answer.valid ? freshness.valid : freshness.invalid)

/** A source's clock may be this far ahead of ours; an answer from further ahead has no known age. */
const clockTolerance = Duration.minutes(10)

const spanOf = (answer: Answer, maxAge: Duration.Duration): Span => {
  const answeredAt = DateTime.toEpochMillis(answer.answered_at)
  return { from: answeredAt - Duration.toMillis(clockTolerance), until: answeredAt + Duration.toMillis(maxAge) }
}

/** The key under which the log points to the newest answer about a VAT ID. */
export const latestKey = (vatId: VatId): string => `answer-${vatId.value}`

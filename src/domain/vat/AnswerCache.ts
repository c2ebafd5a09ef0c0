/** Caches the newest answer about each VAT ID. The cache is a projection of the log: all replicas share it, and it is as durable as the log. */
import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { germanDay } from "#domain/text/CalendarDate.ts"
import { makeLruCache } from "#domain/concurrency/LruCache.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import { SourceName } from "#domain/vat/Verdict.ts"

/** The fields of a source's answer that the cache needs. `valid_from` is the day from which the VAT ID is or was valid. */
export const CachedAnswer = Schema.Struct({
  source: SourceName,
  valid: Schema.Boolean,
  answered_at: Schema.DateTimeUtcFromString,
  company_name: Schema.NullOr(Schema.String),
  company_address: Schema.NullOr(Schema.String),
  valid_from: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type CachedAnswer = typeof CachedAnswer.Type

/**
 * An answer and the position of its event. `asOf` is the position of the newest event about the answer: the answer itself, or its
 * erasure. The append of a cache hit fails if `asOf` is outdated.
 */
export interface StoredAnswer {
  readonly position: number
  readonly asOf: number
  readonly answer: CachedAnswer
}

export class AnswerCache extends Context.Service<
  AnswerCache,
  {
    /**
     * Returns the newest answer for a VAT ID, possibly from the cache of this process. The cached answer may be outdated, so the
     * append of a cache hit checks `asOf`.
     */
    readonly newest: (vatId: VatId) => Effect.Effect<Option.Option<StoredAnswer>, StoreUnavailable>
    /** Returns the newest answer for a VAT ID from the database. */
    readonly refresh: (vatId: VatId) => Effect.Effect<Option.Option<StoredAnswer>, StoreUnavailable>
    /** Succeeds if the database can be read. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/vat/AnswerCache") {}

/** Maximum number of entries in the cache of a process, of up to a kilobyte each. */
const maxAnswers = 20_000

/** Caches the answers of the underlying AnswerCache in this process. */
export const layerCached = Layer.effect(
  AnswerCache,
  Effect.gen(function* () {
    const source = yield* AnswerCache
    const answers = makeLruCache<Option.Some<StoredAnswer>>(maxAnswers)

    const refresh = (vatId: VatId) =>
      Effect.map(source.refresh(vatId), (stored) => {
        if (Option.isSome(stored)) answers.set(vatId.value, stored)
        else answers.delete(vatId.value)
        return stored
      })

    return AnswerCache.of({
      newest: (vatId) => {
        const cached = answers.get(vatId.value)
        return cached === undefined ? refresh(vatId) : Effect.succeed(cached)
      },
      refresh,
      ping: source.ping
    })
  })
)

/**
 * Maximum ages of answers. `valid` and `invalid` apply to fresh answers with that verdict. `stale` applies to answers that are
 * served during an outage. The age of an answer counts from its time by the source's clock (rules 16, 18).
 */
export interface Freshness {
  readonly valid: Duration.Duration
  readonly invalid: Duration.Duration
  readonly stale: Duration.Duration
}

/** Returns true if the answer may be served without a call of a source. */
export const isFresh = (answer: CachedAnswer, { invalid, valid }: Freshness, nowMs: number): boolean =>
  isYounger(answer, answer.valid ? valid : invalid, nowMs)

/** Returns true if the answer may be served during an outage of the sources. */
export const isServableStale = (answer: CachedAnswer, { stale }: Freshness, nowMs: number): boolean =>
  isYounger(answer, stale, nowMs)

/**
 * Maximum time by which a source's clock can be ahead. An answer whose time is further in the future is neither fresh nor stale,
 * so it is not served.
 */
const clockToleranceMs = Duration.toMillis(Duration.minutes(10))

const isYounger = (answer: CachedAnswer, maxAge: Duration.Duration, nowMs: number) => {
  const ageMs = nowMs - DateTime.toEpochMillis(answer.answered_at)
  return ageMs >= -clockToleranceMs && ageMs < Duration.toMillis(maxAge) && !hasBecomeValid(answer, nowMs)
}

/** Returns true if the answer says that the VAT ID becomes valid on a later day (evatr-2002), and that day has begun in Germany. */
const hasBecomeValid = ({ answered_at, valid, valid_from = null }: CachedAnswer, nowMs: number) =>
  !valid && valid_from !== null && germanDay(answered_at) < valid_from && valid_from <= germanDay(DateTime.makeUnsafe(nowMs))

/** Returns the key of the newest answer for a VAT ID in the table `latest`. */
export const latestKey = (vatId: VatId): string => `answer-${vatId.value}`

/** The newest answer of a source per VAT ID, shared by all replicas: a projection of the log, so it is as durable as the log. */
import { Context, DateTime, Duration, Effect, Layer, Option, Schema } from "effect"
import { makeLruCache } from "#domain/kernel/LruCache.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import { SourceName } from "#domain/vat/Verdict.ts"

/** The part of an answer that responses show. The evidence stays in the event. */
export const CachedAnswer = Schema.Struct({
  source: SourceName,
  valid: Schema.Boolean,
  answered_at: Schema.DateTimeUtcFromString,
  company_name: Schema.NullOr(Schema.String),
  company_address: Schema.NullOr(Schema.String)
})
export type CachedAnswer = typeof CachedAnswer.Type

/**
 * An answer and the position of its event. `asOf` is the position of the newest event about the answer: that event or its
 * erasure. Repeating the answer requires `asOf` as a precondition.
 */
export interface StoredAnswer {
  readonly position: number
  readonly asOf: number
  readonly answer: CachedAnswer
}

export class AnswerCache extends Context.Service<
  AnswerCache,
  {
    /** Returns the newest answer, possibly from this process's cache: the append that repeats it checks `asOf`. */
    readonly newest: (vatId: VatId) => Effect.Effect<Option.Option<StoredAnswer>, StoreUnavailable>
    /** Same, bypassing the cache. */
    readonly refresh: (vatId: VatId) => Effect.Effect<Option.Option<StoredAnswer>, StoreUnavailable>
    /** Succeeds if the cache can be read. */
    readonly ping: Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/vat/AnswerCache") {}

/** Entries in the cache of a process, up to a kilobyte each. */
const maxAnswers = 20_000

/** Caches the answers of the underlying AnswerCache. */
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

/** How long an answer may be served. Ages count from the source's own time, not from the time of storage (rules 16, 18). */
export interface Freshness {
  readonly valid: Duration.Duration
  readonly invalid: Duration.Duration
  readonly stale: Duration.Duration
}

export const isFresh = (answer: CachedAnswer, { invalid, valid }: Freshness, nowMs: number): boolean =>
  isYounger(answer, answer.valid ? valid : invalid, nowMs)

/** Returns true for an old answer that may be served during an outage of every source. */
export const isServableStale = (answer: CachedAnswer, { stale }: Freshness, nowMs: number): boolean =>
  isYounger(answer, stale, nowMs)

/** Tolerated lead of a source's clock; an answer from further in the future has no known age. */
const clockToleranceMs = Duration.toMillis(Duration.minutes(10))

const isYounger = ({ answered_at }: CachedAnswer, maxAge: Duration.Duration, nowMs: number) => {
  const ageMs = nowMs - DateTime.toEpochMillis(answered_at)
  return ageMs >= -clockToleranceMs && ageMs < Duration.toMillis(maxAge)
}

/** The key under which the log finds the newest answer for a VAT ID. */
export const latestKey = (vatId: VatId): string => `answer-${vatId.value}`

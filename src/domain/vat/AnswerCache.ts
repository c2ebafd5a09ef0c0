/** Caches the newest answer about each VAT ID. The cache is a projection of the log: all replicas share it, and it is as durable as the log. */
import { Context, Effect, Layer, Option, Schema } from "effect"
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

/** Returns the key of the newest answer for a VAT ID in the table `latest`. */
export const latestKey = (vatId: VatId): string => `answer-${vatId.value}`

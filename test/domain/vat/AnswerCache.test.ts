import { Effect, Layer, Option, Result } from "effect"
import { AnswerCache, latestKey, layerCached, type StoredAnswer } from "#domain/vat/AnswerCache.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { parse } from "#domain/vat/VatId.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, describe, it } from "#test/support/Test.ts"

describe("a cached answer", () => {
  it("has a cache key with the normalised VAT ID", () => {
    const key = (input: string) => latestKey(Result.getOrThrow(parse(input)))
    assert.strictEqual(key("gr 094259216"), key("EL094259216"))
    assert.notStrictEqual(key("EL094259216"), key("DE094259216"))
  })
})

/** The cache of a process in front of an AnswerCache that returns `answer()`. `reads` collects the VAT IDs that it requests. */
const cachedOver = Effect.fnUntraced(function* (answer: () => Effect.Effect<Option.Option<StoredAnswer>, StoreUnavailable>) {
  const reads: Array<string> = []
  const read = (vatId: { readonly value: string }) =>
    Effect.suspend(() => {
      reads.push(vatId.value)
      return answer()
    })
  const source = Layer.succeed(AnswerCache, { newest: read, refresh: read, ping: Effect.void })
  const cache = yield* Effect.provide(AnswerCache, Layer.provide(layerCached, source))
  return { cache, reads }
})

const vatId = Result.getOrThrow(parse("ATU12345678"))
const storedAt = (position: number): StoredAnswer => ({ position, asOf: position, answer: sourceAnswer })

describe("the answers that a process caches", () => {
  it.effect("are read from the database once, and again on refresh", function* () {
    let position = 0
    const { cache, reads } = yield* cachedOver(() => Effect.sync(() => Option.some(storedAt((position += 1)))))
    const newest = Effect.suspend(() => Effect.map(cache.newest(vatId), (stored) => Option.getOrThrow(stored).position))
    assert.deepStrictEqual([yield* newest, yield* newest], [1, 1])
    assert.deepStrictEqual(yield* cache.refresh(vatId), Option.some(storedAt(2)))
    assert.strictEqual(yield* newest, 2)
    assert.lengthOf(reads, 2)
  })

  it.effect("are removed if a refresh finds no answer, and the cache does not remember that an answer is missing", function* () {
    let answer: Option.Option<StoredAnswer> = Option.some(storedAt(1))
    const { cache, reads } = yield* cachedOver(() => Effect.sync(() => answer))
    yield* cache.newest(vatId)
    answer = Option.none()
    assert.isTrue(Option.isNone(yield* cache.refresh(vatId)))
    for (const _ of [1, 2]) assert.isTrue(Option.isNone(yield* cache.newest(vatId)))
    assert.lengthOf(reads, 4)
  })

  it.effect("are served during a database outage, while look-ups of answers outside the cache fail", function* () {
    let isAway = false
    const { cache } = yield* cachedOver(() =>
      Effect.suspend(() => (isAway ? Effect.fail(new StoreUnavailable({})) : Effect.succeed(Option.some(storedAt(1)))))
    )
    yield* cache.newest(vatId)
    isAway = true
    assert.isTrue(Option.isSome(yield* cache.newest(vatId)))
    const other = Result.getOrThrow(parse("ATU12345679"))
    assert.strictEqual((yield* Effect.flip(cache.newest(other)))._tag, "StoreUnavailable")
  })

  it.effect("number at most 20,000; one more answer evicts the least recently used answer", function* () {
    const { cache, reads } = yield* cachedOver(() => Effect.succeed(Option.some(storedAt(1))))
    const vatIds = Array.from({ length: 20_001 }, (_, index) => Result.getOrThrow(parse(`DE${100_000_000 + index}`)))
    yield* Effect.forEach(vatIds, cache.newest, { discard: true })
    const before = reads.length
    yield* cache.newest(vatIds.at(-1) ?? vatId)
    assert.lengthOf(reads, before)
    yield* cache.newest(vatIds[0] ?? vatId)
    assert.deepStrictEqual(reads.slice(before), ["DE100000000"])
  })
})

import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as Limits from "#events/callers/PgRateLimiter.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RoundTrips from "#test/support/RoundTrips.ts"
import { assert, layer } from "#test/support/Test.ts"

const testLayer = Limits.layer.pipe(
  Layer.provideMerge(MigratedDatabase.layer),
  Layer.provideMerge(Layer.merge(NodeCrypto.layer, RoundTrips.layer))
)

const replicas = Effect.gen(function* () {
  const other = Effect.map(Layer.build(Layer.fresh(Limits.layer)), Context.get(RateLimiter))
  return [yield* RateLimiter, yield* other] as const
})

const times = <A>(count: number, make: (index: number) => A) => Array.from({ length: count }, (_, index) => make(index))

layer(testLayer, { excludeTestServices: true })("the rate limiter with a sliding window", (it) => {
  it.effect("grants slots (one for each call) up to the limit, which applies to all replicas together", function* () {
    const both = yield* replicas
    const asked = times(40, (index) => both[index % 2 === 0 ? 0 : 1].acquireSlots(["scarce"], 3, "24 hours"))
    const grants = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.lengthOf(
      grants.filter(({ granted }) => granted),
      3
    )
    for (const { granted, retryAfterSeconds } of grants) {
      if (!granted) assert.isTrue(retryAfterSeconds > 86_000 && retryAfterSeconds <= 86_400, String(retryAfterSeconds))
    }
  })

  it.effect("frees acquired slots if the clock is set back to a time before they were acquired", function* () {
    const { acquireSlots, checkSlots } = yield* RateLimiter
    const setBack = MigratedDatabase.execute(`UPDATE vatproof.rate_slots SET ends_at = ends_at + interval '1 day',
        taken_at = ARRAY(SELECT t + interval '1 day' FROM unnest(taken_at) AS t) WHERE bucket = 'back'`)
    const take = acquireSlots(["back"], 1, "1 hour")
    assert.isTrue((yield* take).granted)
    assert.isFalse((yield* take).granted)
    yield* setBack
    assert.isTrue((yield* checkSlots(["back"], 1, "1 hour")).granted)
    assert.isTrue((yield* take).granted)
    assert.isFalse((yield* take).granted)
  })

  it.effect("grants no slot if the limit is zero", function* () {
    const { acquireSlots } = yield* RateLimiter
    assert.deepStrictEqual(yield* acquireSlots(["none"], 0, "1 minute"), { granted: false, retryAfterSeconds: 60 })
  })
})

layer(testLayer, { excludeTestServices: true })("the rate limiter with several buckets", (it) => {
  const statusOf = (grants: ReadonlyArray<{ readonly granted: boolean }>) => grants.filter(({ granted }) => granted).length

  it.effect("grants a call a slot in each of its buckets, or no slot at all", function* () {
    const { checkSlots, acquireSlots } = yield* RateLimiter
    for (const _ of [1, 2]) assert.isTrue((yield* acquireSlots(["all-a"], 2, "1 hour")).granted)
    const refused = yield* acquireSlots(["all-a", "all-b"], 2, "1 hour")
    assert.isFalse(refused.granted)
    assert.isTrue(refused.retryAfterSeconds > 3_500 && refused.retryAfterSeconds <= 3_600, String(refused.retryAfterSeconds))
    for (const _ of [1, 2]) assert.isTrue((yield* acquireSlots(["all-b"], 2, "1 hour")).granted)
    assert.isFalse((yield* checkSlots(["all-b"], 2, "1 hour")).granted)
  })

  it.effect("acquires no slot in a call of checkSlots, which only reports whether slots are free", function* () {
    const { checkSlots, acquireSlots } = yield* RateLimiter
    for (const _ of [1, 2, 3]) assert.isTrue((yield* checkSlots(["look-a", "look-b"], 1, "1 hour")).granted)
    assert.isTrue((yield* acquireSlots(["look-b", "look-a"], 1, "1 hour")).granted)
    assert.isFalse((yield* checkSlots(["look-a"], 1, "1 hour")).granted)
  })

  it.effect("never exceeds the limit of a bucket under concurrent calls", function* () {
    const both = yield* replicas
    const pairs = [
      ["cross-a", "cross-b"],
      ["cross-b", "cross-a"],
      ["cross-b", "cross-c"],
      ["cross-c", "cross-a"]
    ] as const
    const asked = times(60, (index) => both[index % 2 === 0 ? 0 : 1].acquireSlots(pairs[index % 4] ?? pairs[0], 6, "1 hour"))
    const granted = statusOf(yield* Effect.all(asked, { concurrency: "unbounded" }))
    // Each successful call acquires two of 18 slots, so at most 9 calls succeed. In an unfavourable order fewer calls succeed.
    assert.isTrue(granted >= 6 && granted <= 9, String(granted))
    for (const bucket of ["cross-a", "cross-b", "cross-c"]) {
      const left = yield* Effect.forEach(
        times(7, () => bucket),
        (name) => both[0].acquireSlots([name], 6, "1 hour")
      )
      assert.isFalse(left.at(-1)?.granted)
    }
  })

  it.effect("releases slots when the transaction that acquired them fails", function* () {
    const { acquireSlots } = yield* RateLimiter
    const sql = yield* SqlClient.SqlClient
    const undone = Effect.andThen(acquireSlots(["undone"], 1, "1 hour"), Effect.fail("no")).pipe(sql.withTransaction, Effect.exit)
    for (const _ of [1, 2]) assert.strictEqual((yield* undone)._tag, "Failure")
    assert.isTrue((yield* acquireSlots(["undone"], 1, "1 hour")).granted)
    assert.isFalse((yield* acquireSlots(["undone"], 1, "1 hour")).granted)
  })

  it.effect("frees each slot when that slot expires", function* () {
    const { acquireSlots } = yield* RateLimiter
    const take = acquireSlots(["aging-a", "aging-b"], 2, "1 hour")
    const age = (minutes: number) =>
      MigratedDatabase.execute(`UPDATE vatproof.rate_slots SET taken_at =
          ARRAY(SELECT t - interval '${minutes} minutes' FROM unnest(taken_at) AS t) WHERE bucket LIKE 'aging-%'`)
    assert.isTrue((yield* take).granted)
    yield* age(40)
    assert.isTrue((yield* take).granted)
    const { granted, retryAfterSeconds } = yield* take
    assert.isTrue(!granted && retryAfterSeconds > 1_190 && retryAfterSeconds <= 1_200, String(retryAfterSeconds))
    yield* age(20)
    assert.isTrue((yield* take).granted)
    assert.isFalse((yield* take).granted)
  })
})

layer(testLayer, { excludeTestServices: true })("a lease", (it) => {
  const bucket = "leased"
  const [one, another] = ["01a20419-04ae-76a0-8ca8-7e1e53bc6219", "01a20419-04ae-76a0-8ca8-7e1e53bc6220"] as const

  it.effect("is held by one holder until that holder releases it or it expires", function* () {
    const [first, second] = yield* replicas
    assert.isTrue(yield* first.acquireLease(bucket, one, "1 minute"))
    assert.isFalse(yield* second.acquireLease(bucket, another, "1 minute"))
    // The holder gets it again, for example after a lost response.
    assert.isTrue(yield* first.acquireLease(bucket, one, "1 minute"))
    yield* MigratedDatabase.execute(`UPDATE vatproof.rate_windows SET ends_at = now() WHERE bucket = '${bucket}'`)
    assert.isTrue(yield* second.acquireLease(bucket, another, "1 minute"))
    yield* first.releaseLease(bucket, one)
    assert.isFalse(yield* first.acquireLease(bucket, one, "1 minute"))
    yield* second.releaseLease(bucket, another)
    assert.isTrue(yield* first.acquireLease(bucket, one, "1 minute"))
  })

  it.effect("is acquired and released in the round trip of all waiting callers, by one of them for each name", function* () {
    const { acquireLease, releaseLease } = yield* RateLimiter
    const { uuidV7 } = yield* Crypto
    const asked = times(60, (index) => ({ name: `shared-${index % 20}`, holder: uuidV7() }))
    const acquire = Effect.forEach(asked, ({ holder, name }) => acquireLease(name, holder, "1 minute"), {
      concurrency: "unbounded"
    })
    const granted: Array<number> = []
    const roundTrips = yield* RoundTrips.during(
      Effect.map(acquire, (all) => granted.push(...all.flatMap((isGranted, index) => (isGranted ? [index % 20] : []))))
    )
    assert.isAtMost(roundTrips, 2)
    assert.deepStrictEqual(
      granted.toSorted((one, another) => one - another),
      times(20, (index) => index)
    )
    const release = Effect.forEach(asked, ({ holder, name }) => releaseLease(name, holder), { concurrency: "unbounded" })
    assert.isAtMost(yield* RoundTrips.during(release), 2)
  })

  it.effect("stays with its holder if another holder releases it", function* () {
    const { acquireLease, releaseLease } = yield* RateLimiter
    assert.isTrue(yield* acquireLease("kept", one, "1 hour"))
    yield* releaseLease("kept", another)
    assert.isFalse(yield* acquireLease("kept", another, "1 hour"))
  })
})

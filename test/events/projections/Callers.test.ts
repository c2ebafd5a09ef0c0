import { assert, layer } from "@effect/vitest"
import { Context, DateTime, Effect, Layer, Redacted } from "effect"
import * as ApiKey from "#domain/ApiKey.ts"
import { Hashing } from "#domain/Hashing.ts"
import { Identity } from "#domain/Identity.ts"
import { Plans } from "#domain/Plan.ts"
import { Randomness } from "#domain/Randomness.ts"
import { anonymousMeter, billingPeriod, keyMeter } from "#domain/Usage.ts"
import * as KeyedHash from "#events/KeyedHash.ts"
import * as Callers from "#events/projections/Callers.ts"
import * as HashingLive from "#infra/Hashing.ts"
import * as RandomnessLive from "#infra/Randomness.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"

const perMinute = 30
const limits = { perMonth: 1_000, perMinute }
const plans = Layer.succeed(Plans, {
  byName: { free: limits, starter: limits, business: limits, enterprise: limits },
  anonymous: { lifetime: 10, perMinute: 2 }
})

const testLayer = Callers.layer.pipe(
  Layer.provideMerge(KeyedHash.layer),
  Layer.provideMerge(Layer.mergeAll(plans, HashingLive.layer, RandomnessLive.layer)),
  Layer.provideMerge(MigratedDatabase.layer)
)

/** Two replicas of the service. */
const replicas = Effect.gen(function* () {
  const other = Effect.map(Layer.build(Layer.fresh(Callers.layer)), Context.get(Identity))
  return [yield* Identity, yield* other] as const
})

/** A key of an account of its own. */
const issued = Effect.gen(function* () {
  const random = yield* Randomness
  const key = yield* ApiKey.draw(random)
  const [accountId, keyId] = [yield* random.uuidV7, yield* random.uuidV7]
  const hash = (yield* Hashing).sha256(key)
  yield* MigratedDatabase.execute(
    `INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES ('${accountId}', 'free', now())`
  )
  yield* MigratedDatabase.execute(`INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
    VALUES ('${keyId}', '${accountId}', '\\x${hash}', '${ApiKey.prefixOf(key)}', now())`)
  return { key: Redacted.make(key), keyId }
})

const charged = (meter: string, used: number) =>
  MigratedDatabase.execute(`INSERT INTO vatproof.meters (log_id, meter_id, used) VALUES (0, '${meter}', ${used})`)

const times = <A>(count: number, make: (index: number) => A) => Array.from({ length: count }, (_, index) => make(index))
const ascending = (numbers: ReadonlyArray<number>) => numbers.toSorted((a, b) => a - b)

layer(testLayer, { excludeTestServices: true })("who is admitted", (it) => {
  it.effect("is the same caller as one who is only identified", () =>
    Effect.gen(function* () {
      const { admitByAddress, admitByKey, byKey, streamOfAddress } = yield* Identity
      const { key, keyId } = yield* issued
      yield* charged(keyMeter(keyId, billingPeriod(yield* DateTime.now)), 7)
      const identified = yield* byKey(key)
      assert.deepStrictEqual((yield* admitByKey(key)).caller, identified)
      assert.deepStrictEqual([identified.keyId, identified.usage], [keyId, { used: 7, limit: 1_000 }])
      const { caller: before } = yield* admitByAddress("192.0.2.1")
      yield* charged(anonymousMeter(before.addressHash), 3)
      const { caller: after } = yield* admitByAddress("192.0.2.1")
      assert.deepStrictEqual(after, { ...before, usage: { used: 3, limit: 10 } })
      assert.deepStrictEqual([before.usage.used, before.stream], [0, streamOfAddress("192.0.2.1")])
    })
  )

  it.effect("is counted once a call, on all replicas together", () =>
    Effect.gen(function* () {
      const both = yield* replicas
      const { key } = yield* issued
      const calls = times(100, (index) => both[index % 2 === 0 ? 0 : 1].admitByKey(key))
      const windows = (yield* Effect.all(calls, { concurrency: "unbounded" })).map(({ window }) => window)
      assert.deepStrictEqual(
        ascending(windows.map(({ remaining }) => remaining)),
        times(100, (index) => index - 70)
      )
      for (const { limit, resetSeconds } of windows) {
        assert.strictEqual(limit, perMinute)
        assert.isTrue(resetSeconds > 0 && resetSeconds <= 60)
      }
    })
  )

  it.effect("is counted on its own, whoever comes at the same time", () =>
    Effect.gen(function* () {
      const { admitByAddress, admitByKey } = yield* Identity
      const keys = [yield* issued, yield* issued, yield* issued]
      const unknown = Redacted.make(yield* ApiKey.draw(yield* Randomness))
      const admissions = times(40, (index) => {
        const own = keys[index % 4]
        if (own !== undefined)
          return Effect.map(admitByKey(own.key), ({ caller, window }) => [caller.stream, window.remaining] as const)
        // A key that nobody has stands among those that are known.
        return index % 8 === 3
          ? Effect.map(Effect.flip(admitByKey(unknown)), ({ _tag }) => [_tag, 0] as const)
          : Effect.map(admitByAddress("192.0.2.2"), ({ window }) => ["anonymous", window.remaining] as const)
      })
      const counted = yield* Effect.all(admissions, { concurrency: "unbounded" })
      const of = (name: string) => ascending(counted.flatMap(([stream, remaining]) => (stream === name ? [remaining] : [])))
      for (const { keyId } of keys) {
        assert.deepStrictEqual(
          of(`key-${keyId}`),
          times(10, (index) => index + perMinute - 10)
        )
      }
      assert.deepStrictEqual(of("anonymous"), [-3, -2, -1, 0, 1])
      assert.lengthOf(of("InvalidApiKey"), 5)
    })
  )

  it.effect("starts a minute with the first call after the last one", () =>
    Effect.gen(function* () {
      const { admitByAddress, streamOfAddress } = yield* Identity
      const admit = Effect.map(admitByAddress("192.0.2.3"), ({ window }) => window)
      for (const remaining of [1, 0, -1]) assert.strictEqual((yield* admit).remaining, remaining)
      const stream = streamOfAddress("192.0.2.3")
      const move = (to: string) =>
        MigratedDatabase.execute(`UPDATE vatproof.rate_windows SET ends_at = ${to} WHERE bucket = 'minute/${stream}'`)
      yield* move("ends_at - interval '30 s'")
      const halfway = yield* admit
      assert.strictEqual(halfway.remaining, -2)
      assert.isAtMost(halfway.resetSeconds, 30)
      yield* move("now()")
      const anew = yield* admit
      assert.deepStrictEqual([anew.remaining, anew.resetSeconds], [1, 60])
    })
  )
})

layer(testLayer, { excludeTestServices: true })("who is only identified", (it) => {
  it.effect("is not counted", () =>
    Effect.gen(function* () {
      const { admitByAddress, admitByKey, byKey } = yield* Identity
      const { key } = yield* issued
      yield* Effect.all(times(5, () => byKey(key)))
      assert.strictEqual((yield* admitByKey(key)).window.remaining, perMinute - 1)
      assert.strictEqual((yield* admitByAddress("192.0.2.4")).window.remaining, 1)
    })
  )
})

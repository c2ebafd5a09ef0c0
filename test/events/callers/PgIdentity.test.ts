import { Context, DateTime, Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import * as ApiKey from "#domain/accounts/ApiKey.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { Identity } from "#domain/callers/Identity.ts"
import { Plans } from "#domain/callers/PlanLimits.ts"
import { anonymousMeter, billingPeriod, keyMeter } from "#domain/callers/BillingPeriod.ts"
import * as PgKeyedHash from "#events/callers/PgKeyedHash.ts"
import * as PgIdentity from "#events/callers/PgIdentity.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RoundTrips from "#test/support/RoundTrips.ts"
import { assert, layer } from "#test/support/Test.ts"

const perMinute = 30
const limits = { perMonth: 1_000, perMinute }
const plans = Layer.succeed(Plans, {
  byName: { free: limits, starter: limits, business: limits, enterprise: limits },
  anonymous: { lifetime: 10, perMinute: 2 }
})

const testLayer = PgIdentity.layer.pipe(
  Layer.provideMerge(PgKeyedHash.layer),
  Layer.provideMerge(Layer.mergeAll(plans, NodeCrypto.layer)),
  Layer.provideMerge(MigratedDatabase.layer),
  Layer.provideMerge(RoundTrips.layer)
)

/** Issues an API key to a new account. */
const issued = Effect.gen(function* () {
  const crypto = yield* Crypto
  const key = yield* ApiKey.generate(crypto)
  const [accountId, keyId] = [crypto.uuidV7(), crypto.uuidV7()]
  const hash = crypto.sha256Hex(key)
  yield* MigratedDatabase.execute(
    `INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES ('${accountId}', 'free', now())`
  )
  yield* MigratedDatabase.execute(`INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
    VALUES ('${keyId}', '${accountId}', '\\x${hash}', '${ApiKey.prefixOf(key)}', now())`)
  return { key: Redacted.make(key), keyId, accountId }
})

const charged = (meter: string, used: number) =>
  MigratedDatabase.execute(`INSERT INTO vatproof.meters (log_id, meter_id, used) VALUES (0, '${meter}', ${used})`)

const times = <A>(count: number, make: (index: number) => A) => Array.from({ length: count }, (_, index) => make(index))

const execute = MigratedDatabase.execute

layer(testLayer, { excludeTestServices: true })("the look-up of a caller by API key", (it) => {
  it.effect("returns the plan of the account, the limits of the plan, and the usage of the key in this month", function* () {
    const { byKey, refresh } = yield* Identity
    const { accountId, key, keyId } = yield* issued
    const period = billingPeriod(yield* DateTime.now)
    yield* charged(keyMeter(keyId, period), 7)
    const caller = yield* byKey(key)
    assert.deepStrictEqual(caller, {
      _tag: "Key",
      keyId,
      accountId,
      plan: "free",
      period,
      validUntil: period.end,
      isFormer: false,
      epoch: caller.epoch,
      stream: `key-${keyId}`,
      meter: keyMeter(keyId, period),
      used: 7,
      limit: 1_000,
      perMinute
    })
    assert.deepStrictEqual(yield* refresh(key), caller)
  })

  it.effect("returns the account's own monthly limit if one is set", function* () {
    const { byKey } = yield* Identity
    const { accountId, key } = yield* issued
    yield* execute(`UPDATE vatproof.accounts SET plan = 'business', per_month = 7 WHERE account_id = '${accountId}'`)
    assert.containSubset(yield* byKey(key), { plan: "business", limit: 7, perMinute })
  })

  it.effect(
    "returns a higher identity epoch, which makes cached callers outdated, after a key is revoked or a plan is changed in any account",
    function* () {
      const { byKey } = yield* Identity
      const [own, other] = [yield* issued, yield* issued]
      const epoch = Effect.map(byKey(own.key), (caller) => caller.epoch)
      const before = yield* epoch
      yield* execute(`UPDATE vatproof.api_keys SET revoked_at = now() WHERE key_id = '${other.keyId}'`)
      assert.strictEqual(yield* epoch, before + 1)
      yield* execute(`UPDATE vatproof.accounts SET plan = 'starter' WHERE account_id = '${own.accountId}'`)
      assert.strictEqual(yield* epoch, before + 2)
      yield* issued
      assert.strictEqual(yield* epoch, before + 2)
    }
  )

  it.effect("finds the caller even if concurrent look-ups fail because of unknown, revoked or malformed keys", function* () {
    const { byKey } = yield* Identity
    const [first, second, revoked] = [yield* issued, yield* issued, yield* issued]
    yield* execute(`UPDATE vatproof.api_keys SET revoked_at = now() WHERE key_id = '${revoked.keyId}'`)
    const unknown = Redacted.make(yield* ApiKey.generate(yield* Crypto))
    const keys = [first.key, unknown, second.key, revoked.key, Redacted.make("svc_live_x"), first.key]
    const found = yield* Effect.forEach(
      times(60, (index) => keys[index % keys.length] ?? unknown),
      (key) =>
        Effect.match(byKey(key), {
          onSuccess: ({ keyId }) => keyId,
          onFailure: ({ _tag }) => _tag
        }),
      { concurrency: "unbounded" }
    )
    const refused = "InvalidApiKey"
    const expected = [first.keyId, refused, second.keyId, refused, refused, first.keyId]
    assert.deepStrictEqual(
      found,
      times(60, (index) => expected[index % expected.length] ?? "")
    )
  })

  it.effect("finds the caller by the id of the key while rotations replace the secret of the key", function* () {
    const { byKeyId } = yield* Identity
    const { accountId, keyId } = yield* issued
    const rotate = Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql`UPDATE vatproof.api_keys SET key_sha256 = sha256(key_sha256) WHERE key_id = ${keyId}::uuid`
    )
    const rotations = yield* Effect.forkChild(MigratedDatabase.asAdministrator(Effect.repeat(rotate, { times: 300 })))
    yield* Effect.repeat(
      Effect.map(byKeyId(keyId), (caller) => assert.strictEqual(caller.accountId, accountId)),
      { until: () => rotations.pollUnsafe() !== undefined }
    )
    yield* Fiber.join(rotations)
  })

  it.effect("finds the callers of all waiting look-ups by key id in one round trip", function* () {
    const { byKeyId } = yield* Identity
    const [first, second] = [yield* issued, yield* issued]
    const keyIds = times(40, (index) => (index % 2 === 0 ? first.keyId : second.keyId))
    const lookUps = Effect.forEach(
      keyIds,
      (keyId) => Effect.map(byKeyId(keyId), (caller) => assert.strictEqual(caller.keyId, keyId)),
      { concurrency: "unbounded" }
    )
    // The first look-up does not wait; the others share the second round trip.
    assert.isAtMost(yield* RoundTrips.during(lookUps), 2)
  })

  it.effect("fails for the id of a revoked or unknown key", function* () {
    const { byKeyId } = yield* Identity
    const { keyId } = yield* issued
    yield* execute(`UPDATE vatproof.api_keys SET revoked_at = now() WHERE key_id = '${keyId}'`)
    for (const id of [keyId, (yield* Crypto).uuidV7()])
      assert.strictEqual((yield* Effect.flip(byKeyId(id)))._tag, "InvalidApiKey")
  })
})

layer(testLayer, { excludeTestServices: true })("the look-up of an anonymous caller", (it) => {
  it.effect("identifies the caller by a keyed hash of the IP address, which is equal on every replica", function* () {
    const { byAddress } = yield* Identity
    const other = yield* Effect.map(Layer.build(Layer.fresh(PgIdentity.layer)), Context.get(Identity))
    const caller = byAddress("192.0.2.1")
    const { addressHash } = caller
    assert.deepStrictEqual(caller, {
      _tag: "Anonymous",
      addressHash,
      stream: `anonymous-${addressHash}`,
      meter: anonymousMeter(addressHash),
      limit: 10,
      perMinute: 2
    })
    assert.notInclude(JSON.stringify(caller), "192.0.2.1")
    assert.deepStrictEqual(other.byAddress("192.0.2.1"), caller)
    assert.notStrictEqual(byAddress("192.0.2.2").addressHash, addressHash)
  })
})

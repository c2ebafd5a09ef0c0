import { assert, layer } from "@effect/vitest"
import { Arbitrary, Context, DateTime, Effect, Layer, Result, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient, SqlSchema } from "effect/sql"
import type { AnonymousCaller, KeyCaller } from "#domain/Caller.ts"
import { Metering, type Outdated, type RecordedRepetition, type RepetitionRefusal } from "#domain/Metering.ts"
import { Plans } from "#domain/Plan.ts"
import { billingPeriod } from "#domain/Usage.ts"
import { VatIdVerificationFailed } from "#domain/Verification.ts"
import { EventStore } from "#events/EventStore.ts"
import * as Meters from "#events/Meters.ts"
import * as Randomness from "#infra/Randomness.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"

/** Two replicas' meters on one database: they share nothing else. */
const replica = Effect.map(
  Layer.build(Layer.fresh(Meters.layer.pipe(Layer.provide(Layer.fresh(EventStore.layer)), Layer.provide(Randomness.layer)))),
  Context.get(Metering)
)

const plans = Layer.succeed(Plans, {
  byName: {
    free: { perMonth: 5, perMinute: 10 },
    starter: { perMonth: 1_000, perMinute: 60 },
    business: { perMonth: 10_000, perMinute: 300 },
    enterprise: { perMonth: 100_000, perMinute: 1_000 }
  },
  anonymous: { lifetime: 10, perMinute: 10 }
})

const testLayer = Layer.mergeAll(SecureRandom.layerWebCrypto, plans).pipe(Layer.provideMerge(MigratedDatabase.layer))

/** A caller on the plan business who has just been identified; `end` are the last two digits of the key's and account's id. */
const identified = Effect.fnUntraced(function* (end: string) {
  const keyId = `0192f0c0-0000-7000-8000-0000000000${end}`
  yield* MigratedDatabase.execute(
    `INSERT INTO vatproof.accounts (account_id, plan, created_at) VALUES ('${keyId}', 'business', now())`
  )
  yield* MigratedDatabase.execute(
    `INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
     VALUES ('${keyId}', '${keyId}', sha256('${keyId}'), 'svc_live_abc', now())`
  )
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ epoch: Schema.BigInt }),
    execute: () => sql`SELECT identity_epoch AS epoch FROM vatproof.logs`
  })
  const caller: KeyCaller = {
    _tag: "Key",
    keyId,
    accountId: keyId,
    plan: "business",
    period: billingPeriod(yield* DateTime.now),
    epoch: Number((yield* find(undefined)).epoch),
    stream: `key-${keyId}`,
    meter: `meter-${end}`,
    usage: { used: 0, limit: 10_000 },
    perMinute: 300
  }
  return caller
})

const putOn = (caller: KeyCaller, plan: string, perMonth: number | null) =>
  MigratedDatabase.execute(
    `UPDATE vatproof.accounts SET plan = '${plan}', per_month = ${perMonth} WHERE account_id = '${caller.accountId}'`
  )

const Step = Schema.Struct({
  meter: Schema.Literals([0, 1, 2]),
  units: Schema.Literals([0, 1, 1, 1]),
  replica: Schema.Literals([0, 1])
})
const limits = [0, 3, 10]

const event = VatIdVerificationFailed.make({ vat_id: "ATU12345678", force_live: false, requester_vat_id: null, attempts: [] })

const sums = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ meter_id: Schema.String, used: Schema.BigInt, units: Schema.BigInt }),
    execute: (
      prefix
    ) => sql`SELECT m.meter_id, m.used, (SELECT coalesce(sum(e.units), 0) FROM vatproof.events e WHERE e.meter_id = m.meter_id)::bigint AS units
      FROM vatproof.meters m WHERE m.meter_id LIKE ${`${prefix}%`} ORDER BY m.meter_id`
  })
  return yield* find(run)
})

layer(testLayer, { excludeTestServices: true })("metering", (it) => {
  it.effect.prop(
    "serves exactly what the limit allows, whatever comes at once to two replicas",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 80 })],
    ([steps]) =>
      Effect.gen(function* () {
        const run = yield* (yield* SecureRandom.SecureRandom).uuidV4()
        const replicas = [yield* replica, yield* replica] as const
        const callerOf = (meter: number): AnonymousCaller => ({
          _tag: "Anonymous",
          addressHash: `${run}-${meter}`,
          stream: `${run}-${meter}`,
          meter: `${run}-${meter}`,
          usage: { used: 0, limit: limits[meter] ?? 0 },
          perMinute: 1
        })
        const outcomes = yield* Effect.forEach(
          steps,
          (step) =>
            Effect.result(
              replicas[step.replica].record({ caller: callerOf(step.meter), event, units: step.units, latestOf: null })
            ),
          { concurrency: "unbounded" }
        )
        for (const [meter, limit] of limits.entries()) {
          const own = steps.flatMap((step, index) => {
            const outcome = outcomes[index]
            return step.meter === meter && outcome !== undefined ? [{ step, outcome }] : []
          })
          const charged = own.filter(({ step }) => step.units === 1)
          const served = charged.flatMap(({ outcome }) => (Result.isSuccess(outcome) ? [outcome.success.usage.used] : []))
          const expected = Math.min(charged.length, limit)
          // Each of them is told another count, from the first unit to the last.
          assert.deepStrictEqual(
            served.toSorted((a, b) => a - b),
            Array.from({ length: expected }, (_, index) => index + 1)
          )
          for (const { outcome, step } of own) {
            if (step.units === 0) assert.isTrue(Result.isSuccess(outcome))
            if (Result.isSuccess(outcome)) continue
            assert.containSubset(outcome.failure, { _tag: "QuotaExceeded", plan: "anonymous", limit })
            assert.isTrue("used" in outcome.failure && outcome.failure.used === limit)
          }
        }
        for (const { meter_id, units, used } of yield* sums(run)) assert.strictEqual(used, units, meter_id)
      }),
    { arbitrary: { runs: 25 } }
  )

  it.effect("of 160 calls with a quota of 100 serves 100, whoever sends them", () =>
    Effect.gen(function* () {
      const replicas = [yield* replica, yield* replica] as const
      const now = yield* DateTime.now
      const run = `exact ${DateTime.formatIso(now)}`
      const caller: AnonymousCaller = {
        _tag: "Anonymous",
        addressHash: run,
        stream: run,
        meter: run,
        usage: { used: 0, limit: 100 },
        perMinute: 1
      }
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 160 }, (_, index) => replicas[index % 2 === 0 ? 0 : 1]),
        ({ record }) => Effect.result(record({ caller, event, units: 1, latestOf: null })),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(outcomes.filter(Result.isSuccess), 100)
      assert.deepStrictEqual(yield* sums(run), [{ meter_id: run, used: 100n, units: 100n }])
    })
  )

  it.effect("counts against the plan that the caller is on by then", () =>
    Effect.gen(function* () {
      const { record } = yield* replica
      const caller = yield* identified("b1")
      assert.deepStrictEqual((yield* record({ caller, event, units: 1, latestOf: null })).usage, { used: 1, limit: 10_000 })
      yield* putOn(caller, "free", 2)
      assert.deepStrictEqual((yield* record({ caller, event, units: 1, latestOf: null })).usage, { used: 2, limit: 2 })
      const refused = yield* Effect.flip(record({ caller, event, units: 1, latestOf: null }))
      assert.containSubset(refused, { _tag: "QuotaExceeded", plan: "free", used: 2, limit: 2, periodEnd: caller.period.end })
      yield* putOn(caller, "free", null)
      assert.deepStrictEqual((yield* record({ caller, event, units: 1, latestOf: null })).usage, { used: 3, limit: 5 })
    })
  )

  it.effect("charges nobody for what is part of the paid plans who is on none by then", () =>
    Effect.gen(function* () {
      const { recordFirst } = yield* replica
      const caller = yield* identified("b2")
      const paid = { caller, event, units: 1, latestOf: null, needsPaidPlan: true } as const
      yield* recordFirst({ ...paid, newStream: "receipt-1" })
      yield* putOn(caller, "free", 100)
      assert.strictEqual((yield* Effect.flip(recordFirst({ ...paid, newStream: "receipt-2" })))._tag, "PaidPlanRequired")
      assert.deepStrictEqual(yield* sums(caller.meter), [{ meter_id: caller.meter, used: 1n, units: 1n }])
    })
  )

  it.effect("tells a refused repetition its minute, in which it was counted", () =>
    Effect.gen(function* () {
      const { recordRepeatedUnsafe } = yield* replica
      const { append } = yield* EventStore
      const caller = yield* identified("b3")
      const { position } = yield* append({
        stream: "key-b3",
        expectedVersion: null,
        events: [event],
        charge: null,
        latestOf: "answer-b3"
      })
      const repeated = { caller: { ...caller, usage: { used: 0, limit: 1 } }, event, newest: { key: "answer-b3", position } }
      const repeat = Effect.callback<RecordedRepetition, RepetitionRefusal | Outdated>((resume) =>
        recordRepeatedUnsafe(repeated, { requestId: "r", correlationId: caller.keyId, traceId: null }, resume)
      )
      assert.containSubset(yield* repeat, { usage: { used: 1, limit: 1 }, window: { limit: 300, remaining: 299 } })
      const refused = yield* Effect.flip(repeat)
      assert.containSubset(refused, { _tag: "QuotaExceeded", used: 1, window: { limit: 300, remaining: 298 } })
    })
  )

  it.effect("that is overtaken again and again by changes of keys and plans stores nothing, and may be asked for again", () =>
    Effect.gen(function* () {
      const { record } = yield* replica
      const caller = yield* identified("aa")
      // The first number that no double has: whatever is read of it, the log has moved on.
      yield* MigratedDatabase.execute("UPDATE vatproof.logs SET identity_epoch = 9007199254740993")
      const refused = yield* Effect.flip(record({ caller, event, units: 1, latestOf: null }))
      assert.strictEqual(refused._tag, "StoreUnavailable")
      assert.deepStrictEqual(yield* sums(caller.meter), [])
    })
  )
})

import { Arbitrary, Effect, Layer, Result, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Caller } from "#domain/callers/Caller.ts"
import type { Charge } from "#domain/callers/Metering.ts"
import { parse } from "#domain/vat/VatId.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { answered, unanswered } from "#test/support/SourceAnswer.ts"
import { anonymous, countedOf, currentEpoch, identified, moveEpoch, period, replica } from "#test/support/MeteredCallers.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const testLayer = SecureRandom.layerWebCrypto.pipe(Layer.provideMerge(MigratedDatabase.layer))

const Step = Schema.Struct({
  meter: Schema.Literals([0, 1, 2]),
  units: Schema.Literals([0, 1, 1, 1]),
  replica: Schema.Literals([0, 1])
})
const limits = [0, 3, 10]

const vatId = Result.getOrThrow(parse("ATU12345678"))

const sums = Effect.fnUntraced(function* (run: string) {
  return yield* Rows.all(
    { meter_id: Schema.String, used: Schema.BigInt, units: Schema.BigInt },
    (
      sql
    ) => sql`SELECT m.meter_id, m.used, (SELECT coalesce(sum(e.units), 0) FROM vatproof.events e WHERE e.meter_id = m.meter_id)::bigint AS units
      FROM vatproof.meters m WHERE m.meter_id LIKE ${`${run}%`} ORDER BY m.meter_id`
  )
})

const chargeFor = (caller: Caller, more: Partial<Charge> = {}): Charge => ({
  caller,
  event: unanswered,
  units: 1,
  admitted: null,
  ...more
})

layer(testLayer, { excludeTestServices: true })("metering", (it) => {
  it.effect.prop(
    "accepts exactly as many concurrent calls on two replicas as the quota allows",
    [Arbitrary.array(Arbitrary.schema(Step), { minLength: 1, maxLength: 80 })],
    ([steps]) =>
      Effect.gen(function* () {
        const run = yield* (yield* SecureRandom.SecureRandom).uuidV4()
        const replicas = [yield* replica, yield* replica] as const
        const callerOf = (meter: number) => anonymous(`${run}-${meter}`, limits[meter] ?? 0, 1_000)
        const outcomes = yield* Effect.forEach(
          steps,
          (step) => Effect.result(replicas[step.replica].record(chargeFor(callerOf(step.meter), { units: step.units }))),
          { concurrency: "unbounded" }
        )
        for (const [meter, limit] of limits.entries()) {
          const own = steps.flatMap((step, index) => {
            const outcome = outcomes[index]
            return step.meter === meter && outcome !== undefined ? [{ step, outcome }] : []
          })
          const charged = own.filter(({ step }) => step.units === 1)
          const served = charged.flatMap(({ outcome }) =>
            Result.isSuccess(outcome) ? [outcome.success.standing.usage.used] : []
          )
          const expected = Math.min(charged.length, limit)
          // Each count from 1 to the number of accepted calls is reported exactly once.
          assert.deepStrictEqual(
            served.toSorted((a, b) => a - b),
            Array.from({ length: expected }, (_, index) => index + 1)
          )
          for (const { outcome, step } of own) {
            if (step.units === 0) assert.isTrue(Result.isSuccess(outcome))
            if (Result.isSuccess(outcome)) continue
            assert.containSubset(outcome.failure, {
              _tag: "QuotaExceeded",
              plan: "anonymous",
              standing: { usage: { used: limit, limit } }
            })
          }
        }
        for (const { meter_id, units, used } of yield* sums(run)) assert.strictEqual(used, units, meter_id)
      }),
    { arbitrary: { runs: 25 } }
  )

  it.effect("counts a call towards the rate limit in the append that stores the call's event", function* () {
    const { record } = yield* replica
    const caller = yield* identified("b1", { limit: 2 })
    assert.containSubset(yield* record(chargeFor(caller)), {
      standing: { usage: { used: 1, limit: 2 }, window: { limit: 300, remaining: 299 } }
    })
    yield* record(chargeFor(caller))
    assert.containSubset(yield* Effect.flip(record(chargeFor(caller))), {
      _tag: "QuotaExceeded",
      plan: "business",
      periodEnd: period.end,
      standing: { usage: { used: 2, limit: 2 }, window: { limit: 300, remaining: 297 } }
    })
    assert.strictEqual(yield* countedOf(caller), 3)
  })

  it.effect("rejects a call beyond the limit per minute, and charges nothing for it", function* () {
    const { record } = yield* replica
    const caller = yield* identified("b2", { perMinute: 1 })
    yield* record(chargeFor(caller))
    const refused = yield* Effect.flip(record(chargeFor(caller)))
    assert.containSubset(refused, {
      _tag: "RateLimitExceeded",
      standing: { usage: { used: 1, limit: 10_000 }, window: { limit: 1, remaining: -1 } }
    })
    assert.isTrue(refused._tag === "RateLimitExceeded" && refused.retryAfterSeconds > 0 && refused.retryAfterSeconds <= 60)
    assert.deepStrictEqual(yield* sums(caller.meter), [{ meter_id: caller.meter, used: 1n, units: 1n }])
  })

  it.effect(
    "rejects an anonymous caller because of the used-up lifetime quota, even if the limit per minute is reached too",
    function* () {
      const { admit, record } = yield* replica
      const caller = anonymous("b3", 1, 1)
      yield* record(chargeFor(caller))
      for (const call of [Effect.asVoid(record(chargeFor(caller))), Effect.asVoid(admit(caller))]) {
        assert.containSubset(yield* Effect.flip(call), { _tag: "QuotaExceeded", plan: "anonymous", periodEnd: null })
      }
    }
  )

  it.effect(
    "admits a call with an API key even if the key's quota is used up, but rejects a call beyond the limit per minute",
    function* () {
      const { admit } = yield* replica
      const caller = yield* identified("b4", { limit: 0, perMinute: 1 })
      assert.containSubset(yield* admit(caller), { usage: { used: 0, limit: 0 }, window: { remaining: 0 } })
      assert.strictEqual((yield* Effect.flip(admit(caller)))._tag, "RateLimitExceeded")
    }
  )

  it.effect("does not count an admitted call again when the call's event is stored", function* () {
    const { admit, record } = yield* replica
    const caller = yield* identified("b5")
    const admitted = yield* admit(caller)
    const { standing } = yield* record(chargeFor(caller, { admitted }))
    assert.deepStrictEqual(standing, { usage: { used: 1, limit: 10_000 }, window: admitted.window })
    assert.strictEqual(yield* countedOf(caller), 1)
  })

  it.effect(
    "rejects a call if any key or plan has changed since its caller was cached, and neither stores nor counts the call",
    function* () {
      const { admit, record } = yield* replica
      const caller = yield* identified("b6")
      const admitted = yield* admit(caller)
      yield* moveEpoch
      const charges = [chargeFor(caller), chargeFor(caller, { admitted })]
      for (const call of [Effect.asVoid(admit(caller)), ...charges.map((charge) => Effect.asVoid(record(charge)))]) {
        assert.containSubset(yield* Effect.flip(call), { _tag: "PreconditionFailed", outdated: "identity" })
      }
      assert.strictEqual(yield* countedOf(caller), 1)
      assert.deepStrictEqual(
        (yield* sums(caller.meter)).filter(({ used }) => used > 0n),
        []
      )
      yield* record(chargeFor({ ...caller, epoch: yield* currentEpoch }))
    }
  )

  it.effect("accepts a call of an anonymous caller even if a key or plan has changed since the caller was cached", function* () {
    const { admit, record } = yield* replica
    const caller = anonymous("b7", 5, 5)
    yield* moveEpoch
    yield* admit(caller)
    yield* record(chargeFor(caller))
    assert.strictEqual(yield* countedOf(caller), 2)
  })

  it.effect(
    "rejects a call with a cached answer if a newer answer was stored meanwhile, and neither stores nor counts the call",
    function* () {
      const { record } = yield* replica
      const { append } = yield* EventStore
      const caller = yield* identified("b8")
      const answer = append({ stream: "b8", expectedVersion: null, events: [answered(vatId.value)], charge: null })
      const { position: asOf } = yield* answer
      const repeat = record(chargeFor(caller, { repeats: { vatId, asOf } }))
      yield* repeat
      yield* answer
      assert.containSubset(yield* Effect.flip(repeat), { _tag: "PreconditionFailed", outdated: "answer" })
      assert.strictEqual(yield* countedOf(caller), 1)
      assert.deepStrictEqual(yield* sums(caller.meter), [{ meter_id: caller.meter, used: 1n, units: 1n }])
    }
  )

  it.effect("appends the event of a call to a new stream, and fails without a charge if the stream already exists", function* () {
    const { record } = yield* replica
    const caller = yield* identified("b9")
    const charge = chargeFor(caller, { newStream: "receipt-b9" })
    yield* record(charge)
    assert.containSubset(yield* Effect.flip(record(charge)), { _tag: "StreamExists", stream: "receipt-b9" })
    assert.deepStrictEqual(yield* sums(caller.meter), [{ meter_id: caller.meter, used: 1n, units: 1n }])
  })
})

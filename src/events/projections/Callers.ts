/** Identity on the projections of accounts, keys and meters: who is behind a key or an address, and how much is used up. */
import { DateTime, Effect, Exit, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isWellFormed } from "#domain/ApiKey.ts"
import type { AnonymousCaller, KeyCaller } from "#domain/Caller.ts"
import { Hashing } from "#domain/Hashing.ts"
import { KeyedHash } from "#domain/KeyedHash.ts"
import { Identity, InvalidApiKey } from "#domain/Identity.ts"
import { PlanName, Plans } from "#domain/Plan.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { anonymousMeter, billingPeriod, keyMeter } from "#domain/Usage.ts"
import * as Batcher from "#events/Batcher.ts"
import { logId } from "#events/Append.ts"
import { elementType, sqlArray } from "#events/SqlArray.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

const patience = "3 seconds"
const bounds = { maxBatch: 500, maxWaiting: 20_000, onFull: () => new StoreUnavailable({}) }

const KeyRow = Schema.Struct({
  ord: Schema.BigInt,
  key_id: Schema.String,
  account_id: Schema.String,
  plan: PlanName,
  per_month: Schema.NullOr(Schema.BigInt),
  used: Schema.BigInt,
  epoch: Schema.BigInt
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const hashing = yield* Hashing
  const plans = yield* Plans
  const keyedHash = yield* KeyedHash

  const { findKeys, findMeters } = queriesOf(sql)

  const findKey = yield* Batcher.make({
    ...bounds,
    run: Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const period = billingPeriod(yield* DateTime.now)
      const rows = yield* findKeys({ hashes, meter: keyMeter(keyPlaceholder, period) }).pipe(StoreAccess.patiently(patience))
      const byOrder = new Map(rows.map((row) => [Number(row.ord), row]))
      return hashes.map((_, index) => Exit.succeed({ row: byOrder.get(index + 1), period }))
    })
  })

  const findUsed = yield* Batcher.make({
    ...bounds,
    run: Effect.fnUntraced(function* (meters: ReadonlyArray<string>) {
      const rows = yield* findMeters([...new Set(meters)]).pipe(StoreAccess.patiently(patience))
      const used = new Map(rows.map((row) => [row.meter_id, Number(row.used)]))
      return meters.map((meter) => Exit.succeed(used.get(meter) ?? 0))
    })
  })

  const byKey = Effect.fn("Identity.byKey")(function* (key: Redacted.Redacted) {
    const text = Redacted.value(key)
    if (!isWellFormed(text)) return yield* new InvalidApiKey({})
    // The period goes with what was read for it: at the turn of a month the clock may be in the next one by now.
    const { period, row } = yield* findKey(hashing.sha256(text))
    if (row === undefined) return yield* new InvalidApiKey({})
    const limits = plans.byName[row.plan]
    const limit = row.per_month === null ? limits.perMonth : Number(row.per_month)
    return {
      _tag: "Key",
      keyId: row.key_id,
      accountId: row.account_id,
      plan: row.plan,
      period,
      epoch: Number(row.epoch),
      stream: `key-${row.key_id}`,
      meter: keyMeter(row.key_id, period),
      usage: { used: Number(row.used), limit },
      perMinute: limits.perMinute
    } satisfies KeyCaller
  })

  const byAddress = Effect.fn("Identity.byAddress")(function* (address: string) {
    const addressHash = keyedHash.of("address", address)
    const meter = anonymousMeter(addressHash)
    return {
      _tag: "Anonymous",
      addressHash,
      stream: `anonymous-${addressHash}`,
      meter,
      usage: { used: yield* findUsed(meter), limit: plans.anonymous.lifetime },
      perMinute: plans.anonymous.perMinute
    } satisfies AnonymousCaller
  })

  return Identity.of({ byKey, byAddress })
})

/** Stands for the key's id where the database fills it in. */
const keyPlaceholder = "{key}"

/** Both for a whole batch at once. */
const queriesOf = (sql: SqlClient.SqlClient) => {
  const findKeys = SqlSchema.findAll({
    Request: Schema.Struct({ hashes: Schema.Array(Schema.String), meter: Schema.String }),
    Result: KeyRow,
    execute: ({
      hashes,
      meter
    }) => sql`SELECT asked.ord, k.key_id, k.account_id, a.plan, a.per_month, coalesce(m.used, 0) AS used,
        (SELECT l.identity_epoch FROM vatproof.logs l WHERE l.log_id = ${logId}) AS epoch
      FROM unnest(${sqlArray(hashes, elementType.text)}) WITH ORDINALITY AS asked(hash, ord)
      JOIN vatproof.api_keys k ON k.key_sha256 = decode(asked.hash, 'hex') AND k.revoked_at IS NULL
      JOIN vatproof.accounts a ON a.account_id = k.account_id
      LEFT JOIN vatproof.meters m ON m.log_id = ${logId} AND m.meter_id = replace(${meter}, ${keyPlaceholder}, k.key_id::text)`
  })

  const findMeters = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Schema.Struct({ meter_id: Schema.String, used: Schema.BigInt }),
    execute: (meters) =>
      sql`SELECT meter_id, used FROM vatproof.meters WHERE log_id = ${logId} AND meter_id = ANY (${sqlArray(meters, elementType.text)})`
  })

  return { findKeys, findMeters }
}

export const layer = Layer.effect(Identity, make)

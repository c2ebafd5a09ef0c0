/**
 * Identity on the projections of accounts, keys and meters: who is behind a key or an address, and how much is used up. Whoever is admitted
 * is counted in its minute by the same statement: another round trip would cost more than the counting.
 */
import { DateTime, Effect, Exit, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isWellFormed } from "#domain/ApiKey.ts"
import type { AnonymousCaller, Caller, KeyCaller } from "#domain/Caller.ts"
import { Hashing } from "#domain/Hashing.ts"
import { KeyedHash } from "#domain/KeyedHash.ts"
import { type Admitted, Identity, InvalidApiKey } from "#domain/Identity.ts"
import { limitsOf, PlanName, Plans } from "#domain/Plan.ts"
import { minuteBucket, rateWindow, secondsOfMinute } from "#domain/RateLimits.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { anonymousMeter, type BillingPeriod, billingPeriod, keyMeter } from "#domain/Usage.ts"
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
type KeyRow = typeof KeyRow.Type

/** The minute with the call that was counted. */
const Count = Schema.Struct({ ord: Schema.BigInt, taken: Schema.BigInt, ends_in_ms: Schema.BigInt })
const AdmittedKeyRow = Schema.Struct({ ...KeyRow.fields, ...Count.fields })
const AdmittedAddressRow = Schema.Struct({ ...Count.fields, used: Schema.BigInt })

const makeByKey = Effect.gen(function* () {
  const hashing = yield* Hashing
  const plans = yield* Plans
  const { admitKeys, findKeys } = yield* makeKeyQueries
  const findKey = yield* batchedByKey(findKeys)
  const admitKey = yield* batchedByKey(admitKeys)

  /** What cannot be a key is not looked for. */
  const found = Effect.fnUntraced(function* <Row>(
    key: Redacted.Redacted,
    find: (hash: string) => Effect.Effect<Found<Row>, StoreUnavailable>
  ) {
    const text = Redacted.value(key)
    if (!isWellFormed(text)) return yield* new InvalidApiKey({})
    const { period, row } = yield* find(hashing.sha256(text))
    if (row === undefined) return yield* new InvalidApiKey({})
    return { period, row }
  })

  const callerOf = (row: KeyRow, period: BillingPeriod): KeyCaller => {
    const { perMinute, perMonth } = limitsOf(plans, row.plan, row.per_month)
    return {
      _tag: "Key",
      keyId: row.key_id,
      accountId: row.account_id,
      plan: row.plan,
      period,
      epoch: Number(row.epoch),
      stream: keyStream(row.key_id),
      meter: keyMeter(row.key_id, period),
      usage: { used: Number(row.used), limit: perMonth },
      perMinute
    }
  }

  return {
    byKey: Effect.fn("Identity.byKey")(function* (key: Redacted.Redacted) {
      const { period, row } = yield* found(key, findKey)
      return callerOf(row, period)
    }),
    admitByKey: Effect.fn("Identity.admitByKey")(function* (key: Redacted.Redacted) {
      const { period, row } = yield* found(key, admitKey)
      return admitted(callerOf(row, period), row)
    })
  }
})

const makeByAddress = Effect.gen(function* () {
  const plans = yield* Plans
  const keyedHash = yield* KeyedHash
  const admitAddresses = yield* makeAdmitAddresses

  const admitAddress = yield* Batcher.make({
    ...bounds,
    run: Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const asked = {
        meters: hashes.map(anonymousMeter),
        buckets: hashes.map((addressHash) => minuteBucket({ stream: addressStream(addressHash) }))
      }
      const rows = yield* admitAddresses(asked).pipe(StoreAccess.patientlyForMany(patience))
      return inOrder(hashes, rows).map((row) =>
        row === undefined ? Exit.die("The database gave no count for a call") : Exit.succeed(row)
      )
    })
  })

  const callerOf = (addressHash: string, used: number): AnonymousCaller => ({
    _tag: "Anonymous",
    addressHash,
    stream: addressStream(addressHash),
    meter: anonymousMeter(addressHash),
    usage: { used, limit: plans.anonymous.lifetime },
    perMinute: plans.anonymous.perMinute
  })

  const hashOf = (address: string) => keyedHash.of("address", address)

  return {
    streamOfAddress: (address: string) => addressStream(hashOf(address)),
    admitByAddress: Effect.fn("Identity.admitByAddress")(function* (address: string) {
      const addressHash = hashOf(address)
      const row = yield* admitAddress(addressHash)
      return admitted(callerOf(addressHash, Number(row.used)), row)
    })
  }
})

const make = Effect.zipWith(makeByKey, makeByAddress, (keys, addresses) => Identity.of({ ...keys, ...addresses }))

const keyStream = (keyId: string) => `key-${keyId}`

const addressStream = (addressHash: string) => `anonymous-${addressHash}`

const admitted = <C extends Caller>(caller: C, { ends_in_ms, taken }: typeof Count.Type): Admitted<C> => ({
  caller,
  window: rateWindow(caller.perMinute, Number(taken), Number(ends_in_ms))
})

/** A row for each input, by its number in the question; undefined where there is none. */
const inOrder = <A, Row extends { readonly ord: bigint }>(inputs: ReadonlyArray<A>, rows: ReadonlyArray<Row>) => {
  const byOrder = new Map(rows.map((row) => [Number(row.ord), row]))
  return inputs.map((_, index) => byOrder.get(index + 1))
}

/** What was found of a key, and the period that its meter is read for: at the turn of a month the clock may be in the next one by now. */
interface Found<Row> {
  readonly period: BillingPeriod
  readonly row: Row | undefined
}

/** `meter` and `bucket` are those of a key, with a placeholder for its id, which only the database knows yet. */
interface AskedKeys {
  readonly hashes: ReadonlyArray<string>
  readonly meter: string
  readonly bucket: string
}

const keyPlaceholder = "{key}"

/** Finds keys by their hashes, all that are asked for at once by one query. */
const batchedByKey = <Row extends KeyRow>(
  find: (asked: AskedKeys) => Effect.Effect<ReadonlyArray<Row>, StoreAccess.QueryFailure>
) =>
  Batcher.make({
    ...bounds,
    run: Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const period = billingPeriod(yield* DateTime.now)
      const meter = keyMeter(keyPlaceholder, period)
      const bucket = minuteBucket({ stream: keyStream(keyPlaceholder) })
      const rows = yield* find({ hashes, meter, bucket }).pipe(StoreAccess.patientlyForMany(patience))
      return inOrder(hashes, rows).map((row) => Exit.succeed<Found<Row>>({ row, period }))
    })
  })

const texts = (values: ReadonlyArray<string>) => sqlArray(values, elementType.text)
const minuteMs = secondsOfMinute * 1_000

const makeKeyQueries = Effect.map(SqlClient.SqlClient, (sql) => {
  const AskedKeys = Schema.Struct({ hashes: Schema.Array(Schema.String), meter: Schema.String, bucket: Schema.String })

  const known = ({ hashes, meter }: AskedKeys) => sql`SELECT asked.ord, k.key_id, k.account_id, a.plan, a.per_month,
      coalesce(m.used, 0) AS used, (SELECT l.identity_epoch FROM vatproof.logs l WHERE l.log_id = ${logId}) AS epoch
    FROM unnest(${texts(hashes)}) WITH ORDINALITY AS asked(hash, ord)
    JOIN vatproof.api_keys k ON k.key_sha256 = decode(asked.hash, 'hex') AND k.revoked_at IS NULL
    JOIN vatproof.accounts a ON a.account_id = k.account_id
    LEFT JOIN vatproof.meters m ON m.log_id = ${logId} AND m.meter_id = replace(${meter}, ${keyPlaceholder}, k.key_id::text)`

  return {
    findKeys: SqlSchema.findAll({ Request: AskedKeys, Result: KeyRow, execute: known }),

    /** Also counts one call for each of them, once the key is known. */
    admitKeys: SqlSchema.findAll({
      Request: AskedKeys,
      Result: AdmittedKeyRow,
      execute: (asked) => sql`WITH known AS MATERIALIZED (${known(asked)}),
        placed AS MATERIALIZED (
          SELECT ord, key_id, account_id, plan, per_month, used, epoch,
            row_number() OVER (ORDER BY ord) AS place, replace(${asked.bucket}, ${keyPlaceholder}, key_id::text) AS bucket
          FROM known),
        counted AS MATERIALIZED (
          SELECT c.ord AS place, c.taken, c.ends_in_ms
          FROM vatproof.take(ARRAY(SELECT bucket FROM placed ORDER BY place), ARRAY(SELECT ${minuteMs}::bigint FROM placed)) AS c)
        SELECT ord, key_id, account_id, plan, per_month, used, epoch, taken, ends_in_ms FROM placed JOIN counted USING (place)`
    })
  }
})

/** Counts one call for each, and reads its meter. */
const makeAdmitAddresses = Effect.map(SqlClient.SqlClient, (sql) =>
  SqlSchema.findAll({
    Request: Schema.Struct({ meters: Schema.Array(Schema.String), buckets: Schema.Array(Schema.String) }),
    Result: AdmittedAddressRow,
    execute: ({ buckets, meters }) => sql`SELECT c.ord, c.taken, c.ends_in_ms, coalesce(m.used, 0) AS used
      FROM vatproof.take(${texts(buckets)}, array_fill(${minuteMs}::bigint, ARRAY[${buckets.length}])) AS c
      JOIN unnest(${texts(meters)}) WITH ORDINALITY AS asked(meter_id, ord) ON asked.ord = c.ord
      LEFT JOIN vatproof.meters m ON m.log_id = ${logId} AND m.meter_id = asked.meter_id`
  })
)

export const layer = Layer.effect(Identity, make)

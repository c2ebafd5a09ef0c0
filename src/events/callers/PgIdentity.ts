/**
 * Identifies a caller: finds the account, plan and usage of an API key. A caller without a key is identified by the keyed hash of
 * its IP address.
 */
import { DateTime, Effect, Exit, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isWellFormed } from "#domain/accounts/ApiKey.ts"
import type { AnonymousCaller, KeyCaller } from "#domain/callers/Caller.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { Identity, InvalidApiKey } from "#domain/callers/Identity.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { type AllPlans, limitsOf, PlanName, Plans } from "#domain/callers/PlanLimits.ts"
import { anonymousMeter, type BillingPeriod, billingPeriod, keyMeter } from "#domain/callers/BillingPeriod.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"

const KeyRow = Schema.Struct({
  ord: Schema.BigInt,
  key_id: Schema.String,
  account_id: Schema.String,
  plan: PlanName,
  per_month: Schema.NullOr(Schema.BigInt),
  used: Schema.BigInt,
  epoch: Schema.BigInt,
  valid_until: Schema.NullOr(Schema.DateTimeUtcFromDate)
})
type KeyRow = typeof KeyRow.Type

/** The row of a key, and the month whose meter was read. A lookup at the end of a month may return in the next month. */
interface Found {
  readonly period: BillingPeriod
  readonly row: KeyRow | undefined
}

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const sql = yield* SqlClient.SqlClient
  const keyedHash = yield* KeyedHash
  const plans = yield* Plans
  const findKey = yield* makeFind(
    (hashes) => sqlArray(hashes, elementType.text),
    ({ ord }, hashes) => hashes[Number(ord) - 1]
  )
  // The same statement reads the hash of a key id, because a rotation may replace the hash.
  const findKeyId = yield* makeFind(
    (ids) => sql`ARRAY(SELECT k.hash FROM unnest(${sqlArray(ids, elementType.uuid)}) AS u(key_id) CROSS JOIN LATERAL (
      SELECT encode(key_sha256, 'hex') AS hash FROM vatproof.api_keys WHERE key_id = u.key_id AND revoked_at IS NULL LIMIT 1) AS k)`,
    ({ key_id }) => key_id
  )

  const callerOf = Effect.fnUntraced(function* ({ period, row }: Found) {
    if (row === undefined) return yield* new InvalidApiKey({})
    const hasEnded = row.valid_until !== null && DateTime.isLessThanOrEqualTo(row.valid_until, yield* DateTime.now)
    return hasEnded ? yield* new InvalidApiKey({}) : keyCallerOf(plans, row, period)
  })

  const byKey = (key: Redacted.Redacted) =>
    Effect.suspend(() => {
      const text = Redacted.value(key)
      // Most wrong keys fail the checksum, which saves a query.
      return isWellFormed(text) ? Effect.flatMap(findKey(crypto.sha256Hex(text)), callerOf) : Effect.fail(new InvalidApiKey({}))
    })

  const byKeyId = (keyId: string) => Effect.flatMap(findKeyId(keyId), callerOf)

  return Identity.of({
    byKey,
    refresh: byKey,
    byKeyId,
    refreshKeyId: byKeyId,
    byAddress: (address) => anonymousCallerOf(plans, keyedHash.of("address", address))
  })
})

const keyCallerOf = (plans: AllPlans, row: KeyRow, period: BillingPeriod): KeyCaller => {
  const { perMinute, perMonth } = limitsOf(plans, row.plan, row.per_month)
  return {
    _tag: "Key",
    keyId: row.key_id,
    accountId: row.account_id,
    plan: row.plan,
    period,
    validUntil: row.valid_until === null ? period.end : DateTime.min(row.valid_until, period.end),
    isFormer: row.valid_until !== null,
    epoch: Number(row.epoch),
    stream: keyStream(row.key_id),
    meter: keyMeter(row.key_id, period),
    used: Number(row.used),
    limit: perMonth,
    perMinute
  }
}

const anonymousCallerOf = ({ anonymous }: AllPlans, addressHash: string): AnonymousCaller => ({
  _tag: "Anonymous",
  addressHash,
  stream: `anonymous-${addressHash}`,
  meter: anonymousMeter(addressHash),
  limit: anonymous.lifetime,
  perMinute: anonymous.perMinute
})

const keyStream = (keyId: string) => `key-${keyId}`

/** Placeholder for the key's id in the name of a meter. The database replaces it by the id of each key. */
export const keyPlaceholder = "{key}"

/**
 * Creates a function that finds a key by its name, which is its hash or its id. All waiting lookups share one statement. `hashesOf`
 * returns the hashes of the named keys as SQL, and `nameOf` the name of the key in a row.
 */
const makeFind = Effect.fnUntraced(function* (
  hashesOf: (names: ReadonlyArray<string>) => unknown,
  nameOf: (row: KeyRow, names: ReadonlyArray<string>) => string | undefined
) {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ names: Schema.Array(Schema.String), meter: Schema.String }),
    Result: KeyRow,
    execute: ({ meter, names }) => sql`SELECT ord, key_id, account_id, plan, per_month, used, epoch, valid_until
      FROM vatproof.find_callers(${logId}::smallint, ${hashesOf(names)}, ${meter})`
  })

  return yield* GroupCommit.make({
    procedure: "find_callers",
    run: Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
      const period = billingPeriod(yield* DateTime.now)
      const asked = { names: [...new Set(names)], meter: keyMeter(keyPlaceholder, period) }
      const rows = yield* find(asked).pipe(QueryPolicy.withRetryForMany(retryFor))
      const byName = new Map(rows.map((row) => [nameOf(row, asked.names), row]))
      return names.map((name) => Exit.succeed<Found>({ row: byName.get(name), period }))
    })
  })
})

export const layer = Layer.effect(Identity, make)

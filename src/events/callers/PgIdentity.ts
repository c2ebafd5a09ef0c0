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
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { anonymousMeter, type BillingPeriod, billingPeriod, keyMeter } from "#domain/callers/BillingPeriod.ts"
import { logId } from "#events/store/AppendCommand.ts"
import * as GroupCommit from "#events/store/GroupCommit.ts"
import { elementType, sqlArray } from "#events/database/SqlArray.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"

const retryFor = "3 seconds"
/** Maximum number of keys that one statement looks up. */
const maxBatch = 500
/** Maximum number of callers that wait for the next statement. Further callers are rejected at once. */
const maxWaiting = 20_000

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
  const keyedHash = yield* KeyedHash
  const plans = yield* Plans
  const findKey = yield* makeFindKey
  const findKeyId = yield* makeFindKeyId

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

/** Creates a function that finds a key by its id. It reads the hash in the same statement, because a rotation may replace the hash. */
const makeFindKeyId = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ keyId: Schema.String, meter: Schema.String }),
    Result: KeyRow,
    execute: ({ keyId, meter }) => sql`SELECT ord, key_id, account_id, plan, per_month, used, epoch, valid_until
      FROM vatproof.find_callers(${logId}::smallint, ARRAY(SELECT encode(key_sha256, 'hex') FROM vatproof.api_keys
        WHERE key_id = ${keyId}::uuid AND revoked_at IS NULL), ${meter})`
  })

  return Effect.fnUntraced(function* (keyId: string) {
    const period = billingPeriod(yield* DateTime.now)
    const [row] = yield* find({ keyId, meter: keyMeter(keyPlaceholder, period) }).pipe(QueryPolicy.withRetry(retryFor))
    return { row, period } satisfies Found
  })
})

/** Creates a function that finds a key by its hash. All waiting lookups share one statement. */
const makeFindKey = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ hashes: Schema.Array(Schema.String), meter: Schema.String }),
    Result: KeyRow,
    execute: ({ hashes, meter }) => sql`SELECT ord, key_id, account_id, plan, per_month, used, epoch, valid_until
      FROM vatproof.find_callers(${logId}::smallint, ${sqlArray(hashes, elementType.text)}, ${meter})`
  })

  return yield* GroupCommit.make({
    maxBatch,
    maxWaiting,
    onFull: () => new StoreUnavailable({}),
    procedure: "find_callers",
    run: Effect.fnUntraced(function* (hashes: ReadonlyArray<string>) {
      const period = billingPeriod(yield* DateTime.now)
      const asked = { hashes, meter: keyMeter(keyPlaceholder, period) }
      const rows = yield* find(asked).pipe(QueryPolicy.withRetryForMany(retryFor))
      const byOrd = new Map(rows.map((row) => [Number(row.ord), row]))
      return hashes.map((_, index) => Exit.succeed<Found>({ row: byOrd.get(index + 1), period }))
    })
  })
})

export const layer = Layer.effect(Identity, make)

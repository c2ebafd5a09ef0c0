/** Callers, and replicas of the metering that count and charge their calls on one database. */
import { Context, DateTime, Effect, Layer, Schema } from "effect"
import type { AnonymousCaller, Caller, KeyCaller } from "#domain/callers/Caller.ts"
import { Metering } from "#domain/callers/Metering.ts"
import { minuteBucket } from "#domain/callers/RateLimiter.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as PgMetering from "#events/callers/PgMetering.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as Rows from "#test/support/Rows.ts"

/** Builds the metering of one replica. Replicas share nothing but the database. */
export const replica = Effect.map(
  Layer.build(Layer.fresh(PgMetering.layer.pipe(Layer.provide(Layer.fresh(EventStore.layer)), Layer.provide(NodeCrypto.layer)))),
  Context.get(Metering)
)

/** Reads the current identity epoch. */
export const currentEpoch = Effect.gen(function* () {
  return Number(
    (yield* Rows.one({ epoch: Schema.BigInt }, (sql) => sql`SELECT identity_epoch AS epoch FROM vatproof.logs`)).epoch
  )
})

export const period = billingPeriod(DateTime.makeUnsafe("2026-11-21T12:00:00Z"))

/** Returns a caller on the plan business, with the current identity epoch. */
export const identified = Effect.fnUntraced(function* (
  keyId: string,
  limits: Partial<Pick<KeyCaller, "limit" | "perMinute">> = {}
) {
  const caller: KeyCaller = {
    _tag: "Key",
    keyId,
    accountId: keyId,
    plan: "business",
    period,
    validUntil: period.end,
    isFormer: false,
    epoch: yield* currentEpoch,
    stream: `key-${keyId}`,
    meter: `meter-${keyId}`,
    used: 0,
    limit: 10_000,
    perMinute: 300,
    ...limits
  }
  return caller
})

export const anonymous = (name: string, limit: number, perMinute: number): AnonymousCaller => ({
  _tag: "Anonymous",
  addressHash: name,
  stream: name,
  meter: name,
  limit,
  perMinute
})

/** Returns the number of calls in a caller's current rate window. */
export const countedOf = Effect.fnUntraced(function* (caller: Caller) {
  return (
    (yield* Rows.all(
      { taken: Schema.BigInt },
      (sql) => sql`SELECT taken FROM vatproof.rate_windows WHERE bucket = ${minuteBucket(caller)}`
    )).map(({ taken }) => Number(taken))[0] ?? 0
  )
})

export const moveEpoch = MigratedDatabase.execute("UPDATE vatproof.logs SET identity_epoch = identity_epoch + 1")

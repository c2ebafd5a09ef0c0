/** Metering on the log: the append that stores an event also charges for it, so neither exists without the other. */
import { Array as Arr, Cause, Effect, Exit, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { Caller, KeyCaller } from "#domain/Caller.ts"
import { InvalidApiKey } from "#domain/Identity.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { type Charge, Metering, Outdated, planOf, QuotaExceeded, StreamTaken } from "#domain/Metering.ts"
import { minuteBucket, rateWindow, tooManyInMinute } from "#domain/RateLimits.ts"
import { type Appended, logId, type MeterFull, type Presumption, type PresumingError } from "#events/Append.ts"
import { EventStore } from "#events/EventStore.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

/** How often a charge is repeated because a key or a plan, of whomever, changed meanwhile. */
const maxTurns = 20
const patience = "3 seconds"

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const currentEpoch = yield* makeCurrentEpoch

  const store = Effect.fnUntraced(function* (charge: Charge, presumed: Presumption) {
    const { caller, event, latestOf, lists, newStream, units } = charge
    const cap = caller.usage.limit
    const appended = yield* events
      .appendPresuming({
        stream: newStream ?? caller.stream,
        expectedVersion: newStream === undefined ? null : 0,
        events: [event],
        charge: { meter: caller.meter, units, cap },
        latestOf,
        ...(lists === undefined ? {} : { lists }),
        presumed
      })
      .pipe(
        Effect.catchTag("MeterFull", (full) => Effect.fail(quotaExceeded(caller, full))),
        // No minute is counted here.
        Effect.catchTag("MinuteFull", Effect.die)
      )
    return recordedOf(appended, cap)
  })

  /** Whoever was identified a while ago may have been revoked since: then nothing is stored. */
  const storeFor = Effect.fnUntraced(function* (charge: Charge) {
    const { caller } = charge
    if (caller._tag === "Anonymous") return yield* store(charge, nothingPresumed)
    let epoch = caller.epoch
    for (let turn = 0; turn < maxTurns; turn += 1) {
      const stored = yield* Effect.result(store(charge, { ...nothingPresumed, epoch }))
      if (stored._tag === "Success") return stored.success
      if (stored.failure._tag !== "PresumptionMoved") return yield* stored.failure
      epoch = yield* currentEpoch(caller)
    }
    return yield* new StoreUnavailable({ cause: "The charge of a key was overtaken again and again" })
  })

  const record = (charge: Charge) =>
    // What is presumed was checked.
    storeFor(charge).pipe(Effect.catchTag("PresumptionMoved", Effect.die))

  return Metering.of({
    // In the caller's own stream any version will do, so none can be wrong.
    record: (charge) => record(charge).pipe(Effect.catchTag("StreamMoved", Effect.die)),
    recordFirst: (charge) =>
      record(charge).pipe(Effect.catchTag("StreamMoved", ({ stream }) => Effect.fail(new StreamTaken({ stream })))),
    recordRepeatedUnsafe: ({ caller, event, newest }, served, done) => {
      const { epoch, meter, perMinute, stream, usage } = caller
      const command = {
        stream,
        expectedVersion: null,
        events: Arr.of(event),
        charge: { meter, units: 1, cap: usage.limit },
        latestOf: null,
        presumed: { epoch, newest, minute: { bucket: minuteBucket(caller), limit: perMinute } }
      }
      events.appendUnsafe(command, served, (exit) =>
        done(
          Exit.match(exit, {
            onSuccess: (appended) => {
              const window = rateWindow(perMinute, appended.minute?.taken ?? 0, appended.minute?.endsInMs ?? 0)
              return Exit.succeed({ ...recordedOf(appended, usage.limit), window })
            },
            onFailure: (cause) => repetitionRefused(caller, cause)
          })
        )
      )
    }
  })
})

const quotaExceeded = (caller: Caller, { used }: MeterFull) =>
  new QuotaExceeded({ plan: planOf(caller), used, limit: caller.usage.limit })

const repetitionRefused = (caller: KeyCaller, cause: Cause.Cause<PresumingError>) => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  switch (failure?._tag) {
    case "PresumptionMoved":
      return Exit.fail(new Outdated({}))
    case "MeterFull":
      return Exit.fail(quotaExceeded(caller, failure))
    case "MinuteFull":
      return Exit.fail(tooManyInMinute(rateWindow(caller.perMinute, failure.taken, failure.endsInMs), failure.used))
    case "StoreUnavailable":
      return Exit.fail(failure)
    case "StreamMoved":
    case undefined:
      return Exit.die(Cause.squash(cause))
  }
}

const nothingPresumed: Presumption = { epoch: null, newest: null, minute: null }

const recordedOf = ({ position, used }: Appended, cap: number) => ({ position, usage: { used, limit: cap } })

/** The epoch at which a caller's key is still good; fails if it is not. */
const makeCurrentEpoch = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ identity_epoch: Schema.BigInt, active: Schema.Boolean }),
    execute: (keyId) => sql`SELECT l.identity_epoch,
      EXISTS (SELECT FROM vatproof.api_keys k WHERE k.key_id = ${keyId}::uuid AND k.revoked_at IS NULL) AS active
      FROM vatproof.logs l WHERE l.log_id = ${logId}`
  })
  return Effect.fnUntraced(function* ({ keyId }: KeyCaller) {
    const { active, identity_epoch } = yield* find(keyId).pipe(StoreAccess.patiently(patience))
    if (!active) return yield* new InvalidApiKey({})
    return Number(identity_epoch)
  })
})

export const layer = Layer.effect(Metering, make)

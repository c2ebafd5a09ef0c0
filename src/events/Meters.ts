/** Metering on the log: the append that stores an event also charges for it, so neither exists without the other. */
import { Array as Arr, Cause, Effect, Exit, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { KeyCaller } from "#domain/Caller.ts"
import { PaidPlanRequired } from "#domain/Confirmation.ts"
import { InvalidApiKey } from "#domain/Identity.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import { type Charge, Metering, Outdated, quotaExceeded, StreamTaken } from "#domain/Metering.ts"
import { isPaid, limitsOf, PlanName, Plans } from "#domain/Plan.ts"
import { minuteBucket, rateWindow, tooManyInMinute } from "#domain/RateLimits.ts"
import { type Appended, logId, type Presumption, type PresumingError } from "#events/Append.ts"
import { EventStore } from "#events/EventStore.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

/** How often a charge is repeated because a key or a plan, of whomever, changed meanwhile. */
const maxTurns = 20
const patience = "3 seconds"

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const asOfNow = yield* makeAsOfNow

  const store = Effect.fnUntraced(function* (charge: Charge, presumed: Presumption) {
    const { caller, event, latestOf, lists, needsPaidPlan = false, newStream, units } = charge
    if (needsPaidPlan && caller._tag === "Key" && !isPaid(caller.plan)) return yield* new PaidPlanRequired({})
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
        Effect.catchTag("MeterFull", ({ used }) => Effect.fail(quotaExceeded(caller, used))),
        // No minute is counted here.
        Effect.catchTag("MinuteFull", Effect.die)
      )
    return recordedOf(appended, cap)
  })

  /** Whoever was identified a while ago may have been revoked since: then nothing is stored. Or be on another plan: then that one counts. */
  const storeFor = Effect.fnUntraced(function* (charge: Charge) {
    let { caller } = charge
    if (caller._tag === "Anonymous") return yield* store(charge, nothingPresumed)
    for (let turn = 0; turn < maxTurns; turn += 1) {
      const stored = yield* Effect.result(store({ ...charge, caller }, { ...nothingPresumed, epoch: caller.epoch }))
      if (stored._tag === "Success") return stored.success
      if (stored.failure._tag !== "PresumptionMoved") return yield* stored.failure
      caller = yield* asOfNow(caller)
    }
    return yield* new StoreUnavailable({ cause: "The charge of a key was overtaken again and again" })
  })

  const record = (charge: Charge) =>
    // What is presumed was checked.
    storeFor(charge).pipe(Effect.catchTag("PresumptionMoved", Effect.die))

  return Metering.of({
    // In the caller's own stream any version will do, so none can be wrong.
    record: (charge) => record(charge).pipe(Effect.catchTag(["StreamMoved", "PaidPlanRequired"], Effect.die)),
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
              return Exit.succeed({ ...recordedOf(appended, usage.limit), window: windowOf(caller, appended) })
            },
            onFailure: (cause) => repetitionRefused(caller, cause)
          })
        )
      )
    }
  })
})

const windowOf = ({ perMinute }: KeyCaller, { minute }: Pick<Appended, "minute">) =>
  minute === null ? null : rateWindow(perMinute, minute.taken, minute.endsInMs)

const repetitionRefused = (caller: KeyCaller, cause: Cause.Cause<PresumingError>) => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  switch (failure?._tag) {
    case "PresumptionMoved":
      return Exit.fail(new Outdated({}))
    case "MeterFull":
      return Exit.fail(quotaExceeded(caller, failure.used, windowOf(caller, failure)))
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

const Terms = Schema.Struct({ epoch: Schema.BigInt, plan: PlanName, per_month: Schema.NullOr(Schema.BigInt) })

/** The caller by the present state of keys and plans; fails if its key was revoked. */
const makeAsOfNow = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const plans = yield* Plans
  const find = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Terms,
    execute: (keyId) => sql`SELECT l.identity_epoch AS epoch, a.plan, a.per_month FROM vatproof.logs l
      JOIN vatproof.api_keys k ON k.key_id = ${keyId}::uuid AND k.revoked_at IS NULL
      JOIN vatproof.accounts a ON a.account_id = k.account_id WHERE l.log_id = ${logId}`
  })
  return Effect.fnUntraced(function* (caller: KeyCaller) {
    const found = yield* find(caller.keyId).pipe(StoreAccess.patiently(patience))
    if (Option.isNone(found)) return yield* new InvalidApiKey({})
    const { epoch, per_month, plan } = found.value
    const { perMinute, perMonth } = limitsOf(plans, plan, per_month)
    const usage = { ...caller.usage, limit: perMonth }
    return { ...caller, epoch: Number(epoch), plan, usage, perMinute } satisfies KeyCaller
  })
})

export const layer = Layer.effect(Metering, make)

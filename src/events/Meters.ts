/** Metering on the log: the append that stores an event also charges for it, so neither exists without the other. */
import { Array as Arr, Effect, Exit, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { CachedAnswer, latestKey } from "#domain/AnswerCache.ts"
import type { Caller } from "#domain/Caller.ts"
import {
  type CallRefusal,
  type Charge,
  Metering,
  minuteRefusal,
  PreconditionFailed,
  quotaRefusal,
  StreamExists
} from "#domain/Metering.ts"
import { minuteBucket, rateWindow } from "#domain/RateLimits.ts"
import type { RateWindow, Standing } from "#domain/Standing.ts"
import { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type * as AppendCommand from "#events/AppendCommand.ts"
import { logId } from "#events/AppendCommand.ts"
import * as Batcher from "#events/Batcher.ts"
import { EventStore } from "#events/EventStore.ts"
import { elementType, sqlArray } from "#events/SqlArray.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

const retryFor = "3 seconds"
/** Bounds: calls counted by one statement, and calls that may wait for it. */
const maxBatch = 500
const maxWaiting = 20_000

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const countCall = yield* makeCountCall

  return Metering.of({
    admit: (caller) =>
      Effect.flatMap(countCall(caller), (standing) => {
        const refusal = minuteRefusal(caller, standing)
        return refusal === null ? Effect.succeed(standing) : Effect.fail(refusal)
      }),
    record: (charge) =>
      Effect.matchEffect(events.append(commandOf(charge)), {
        onSuccess: (appended) =>
          Effect.succeed({
            position: appended.position,
            standing: standingOf(charge, appended.used, windowOf(charge, appended))
          }),
        onFailure: (failure) => refusalOf(charge, failure)
      })
  })
})

const commandOf = ({
  admitted,
  answer,
  caller,
  event,
  lists,
  newStream,
  repeats,
  units
}: Charge): AppendCommand.AppendCommand => ({
  stream: newStream ?? caller.stream,
  expectedVersion: newStream === undefined ? null : 0,
  events: Arr.of(event),
  charge: { meter: caller.meter, units, cap: caller.limit },
  latest: answer === undefined ? undefined : { key: latestKey(answer.vatId), answer: encodeAnswer(answer.answer) },
  lists,
  precondition: {
    epoch: caller._tag === "Key" ? caller.epoch : null,
    newest: repeats === undefined ? null : { key: latestKey(repeats.vatId), position: repeats.position }
  },
  minute: admitted === null ? { bucket: minuteBucket(caller), limit: caller.perMinute } : undefined
})

const encodeAnswer = Schema.encodeSync(Schema.fromJsonString(CachedAnswer))

const standingOf = ({ caller }: Charge, used: number, window: RateWindow | null): Standing => ({
  usage: { used, limit: caller.limit },
  window
})

/** The caller's minute: as this append counted it, or as `admit` did before. */
const windowOf = ({ admitted, caller }: Charge, { minute }: Pick<AppendCommand.Appended, "minute">) => {
  if (admitted !== null) return admitted.window
  return minute === null ? null : rateWindow(caller.perMinute, minute.taken, minute.endsInMs)
}

type RecordFailure = CallRefusal | PreconditionFailed | StreamExists | StoreUnavailable

const refusalOf = (charge: Charge, failure: AppendCommand.AppendError): Effect.Effect<never, RecordFailure> => {
  switch (failure._tag) {
    case "PreconditionFailed":
      return Effect.fail(new PreconditionFailed({ what: failure.what }))
    case "VersionConflict":
      return Effect.fail(new StreamExists({ stream: failure.stream }))
    case "StoreUnavailable":
      return Effect.fail(failure)
    case "QuotaReached":
    case "RateLimitReached": {
      const standing = standingOf(charge, failure.used, windowOf(charge, failure))
      const refusal = minuteRefusal(charge.caller, standing) ?? quotaRefusal(charge.caller, standing)
      return refusal === null ? Effect.die(`vatproof.append refused a call that fits: ${failure._tag}`) : Effect.fail(refusal)
    }
  }
}

const CountedCall = Schema.Struct({
  ord: Schema.BigInt,
  is_current: Schema.Boolean,
  taken: Schema.NullOr(Schema.BigInt),
  ends_in_ms: Schema.NullOr(Schema.BigInt),
  used: Schema.BigInt
})

/** Counts a call; all that wait share one statement. */
const makeCountCall = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const count = SqlSchema.findAll({
    Request: Schema.Struct({
      epochs: Schema.Array(Schema.NullOr(Schema.BigInt)),
      buckets: Schema.Array(Schema.String),
      meters: Schema.Array(Schema.String)
    }),
    Result: CountedCall,
    execute: ({ buckets, epochs, meters }) => sql`SELECT ord, is_current, taken, ends_in_ms, used FROM vatproof.count_calls(
      ${logId}::smallint, ${sqlArray(epochs, elementType.int8)}, ${sqlArray(buckets, elementType.text)}, ${sqlArray(meters, elementType.text)})`
  })

  return yield* Batcher.make({
    maxBatch,
    maxWaiting,
    onFull: (): PreconditionFailed | StoreUnavailable => new StoreUnavailable({}),
    run: Effect.fnUntraced(function* (callers: ReadonlyArray<Caller>) {
      const epochs = callers.map((caller) => (caller._tag === "Key" ? BigInt(caller.epoch) : null))
      const [buckets, meters] = [callers.map(minuteBucket), callers.map(({ meter }) => meter)]
      const rows = yield* count({ epochs, buckets, meters }).pipe(StoreAccess.patientlyForMany(retryFor))
      const byOrd = new Map(rows.map((row) => [Number(row.ord), row]))
      return callers.map((caller, index) => countedOf(caller, byOrd.get(index + 1)))
    })
  })
})

const countedOf = (
  { limit, perMinute }: Caller,
  row: typeof CountedCall.Type | undefined
): Exit.Exit<Standing, PreconditionFailed | StoreUnavailable> => {
  if (row === undefined) return Exit.die("vatproof.count_calls gave no row for a call")
  if (!row.is_current) return Exit.fail(new PreconditionFailed({ what: "identity" }))
  return Exit.succeed({
    usage: { used: Number(row.used), limit },
    window: rateWindow(perMinute, Number(row.taken), Number(row.ends_in_ms))
  })
}

export const layer = Layer.effect(Metering, make)

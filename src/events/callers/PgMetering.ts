/** Meters calls. The append that stores the event of a call also charges the call, so that events and meters cannot diverge. */
import { Array as Arr, Effect, Layer } from "effect"
import { latestKey } from "#domain/vat/AnswerCache.ts"
import {
  AlreadyRecorded,
  type CallRefusal,
  type Charge,
  type IdentifiedEvent,
  Metering,
  minuteRefusal,
  PreconditionFailed,
  quotaRefusal,
  StreamExists
} from "#domain/callers/Metering.ts"
import type { EventIdentity } from "#domain/log/DomainEvent.ts"
import { minuteBucket, rateWindow } from "#domain/callers/RateLimiter.ts"
import type { RateWindow, Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type * as AppendCommand from "#events/log/store/AppendCommand.ts"
import * as CallCounter from "#events/callers/CallCounter.ts"
import { EventStore } from "#events/log/store/EventStore.ts"

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const countCall = yield* CallCounter.make

  return Metering.of({
    admit: (caller) =>
      Effect.flatMap(countCall(caller), (standing) => {
        const refusal = minuteRefusal(caller, standing)
        return refusal === null ? Effect.succeed(standing) : Effect.fail(refusal)
      }),
    record: (charge) =>
      Effect.matchEffect(events.append(commandOf(charge)), {
        onSuccess: (appended) => {
          const { isDuplicate, position } = appended
          return isDuplicate && charge.identity !== undefined
            ? Effect.fail(new AlreadyRecorded({ position }))
            : Effect.succeed({ position, standing: standingOf(charge, appended.used, windowOf(charge, appended)) })
        },
        onFailure: (failure) => refusalOf(charge, failure)
      })
  })
})

const commandOf = ({ admitted, caller, event, identity, newStream, repeats, units }: Charge): AppendCommand.AppendCommand => ({
  stream: newStream ?? caller.stream,
  expectedVersion: newStream === undefined ? null : 0,
  events: identity?.accepted === undefined ? Arr.of(event) : [event, identity.accepted],
  identities: identity === undefined ? undefined : identitiesOf(identity),
  mayBeStored: identity?.mayBeStored,
  charge: { meter: caller.meter, units, cap: caller.limit },
  precondition: {
    epoch: caller._tag === "Key" ? caller.epoch : null,
    newest: repeats === undefined ? null : { key: latestKey(repeats.vatId), asOf: repeats.asOf }
  },
  minute: admitted === null ? { bucket: minuteBucket(caller), limit: caller.perMinute } : undefined
})

/**
 * Returns the ids of the answer's event, then the ids of ValidationAccepted if the command also appends that event. The id of
 * ValidationAccepted is the id of the task.
 */
const identitiesOf = ({ accepted, causationId, eventId }: IdentifiedEvent): ReadonlyArray<EventIdentity> => [
  { eventId, causationId },
  ...(accepted === undefined || causationId === null ? [] : [{ eventId: causationId, causationId: null }])
]

const standingOf = ({ caller }: Charge, used: number, window: RateWindow | null): Standing => ({
  usage: { used, limit: caller.limit },
  window
})

/**
 * Returns the rate window that counted the call: in `admit` or, if `admit` was not called, in this append. Null if the append did
 * not count the call.
 */
const windowOf = ({ admitted, caller }: Charge, { minute }: Pick<AppendCommand.Appended, "minute">) => {
  if (admitted !== null) return admitted.window
  return minute === null ? null : rateWindow(caller.perMinute, minute.taken, minute.endsInMs)
}

type RecordFailure = CallRefusal | PreconditionFailed | StreamExists | StoreUnavailable

const refusalOf = (charge: Charge, failure: AppendCommand.AppendError): Effect.Effect<never, RecordFailure> => {
  switch (failure._tag) {
    case "PreconditionFailed":
      return Effect.fail(new PreconditionFailed({ outdated: failure.outdated }))
    case "VersionConflict":
      return Effect.fail(new StreamExists({ stream: failure.stream }))
    case "StoreUnavailable":
      return Effect.fail(failure)
    case "QuotaReached":
    case "RateLimitReached": {
      const standing = standingOf(charge, failure.used, windowOf(charge, failure))
      const refusal = minuteRefusal(charge.caller, standing) ?? quotaRefusal(charge.caller, standing)
      return refusal === null
        ? Effect.die(`vatproof.append refused a metered call although the caller is below its limits (a defect): ${failure._tag}`)
        : Effect.fail(refusal)
    }
  }
}

export const layer = Layer.effect(Metering, make)

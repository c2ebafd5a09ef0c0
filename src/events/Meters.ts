/** Metering on the log: the append that stores an event also charges for it, so neither exists without the other. */
import { Effect, Layer } from "effect"
import { type Charge, Metering, planOf, QuotaExceeded, StreamTaken } from "#domain/Metering.ts"
import { EventStore } from "#events/EventStore.ts"

const make = Effect.gen(function* () {
  const events = yield* EventStore

  const store = Effect.fnUntraced(function* ({ caller, event, latestOf, lists, newStream, units }: Charge) {
    const cap = caller.usage.limit
    const appended = yield* events
      .append({
        stream: newStream ?? caller.stream,
        expectedVersion: newStream === undefined ? null : 0,
        events: [event],
        charge: { meter: caller.meter, units, cap },
        latestOf,
        ...(lists === undefined ? {} : { lists })
      })
      .pipe(
        Effect.catchTag("MeterFull", ({ used }) => Effect.fail(new QuotaExceeded({ plan: planOf(caller), used, limit: cap })))
      )
    return { position: appended.position, usage: { used: appended.used, limit: cap } }
  })

  return Metering.of({
    // In the caller's own stream any version will do, so none can be wrong.
    record: (charge) => store(charge).pipe(Effect.catchTag("StreamMoved", Effect.die)),
    recordFirst: (charge) =>
      store(charge).pipe(Effect.catchTag("StreamMoved", ({ stream }) => Effect.fail(new StreamTaken({ stream }))))
  })
})

export const layer = Layer.effect(Metering, make)

/** Metering on the log: the append that stores an event also charges for it, so neither exists without the other. */
import { Effect, Layer } from "effect"
import { type Charge, Metering, planOf, QuotaExceeded } from "#domain/Metering.ts"
import { EventStore } from "#events/EventStore.ts"

const make = Effect.gen(function* () {
  const events = yield* EventStore

  const record = Effect.fnUntraced(function* ({ caller, event, latestOf, units }: Charge) {
    const cap = caller.usage.limit
    const appended = yield* events
      .append({
        stream: caller.stream,
        expectedVersion: null,
        events: [event],
        charge: { meter: caller.meter, units, cap },
        latestOf
      })
      .pipe(
        Effect.catchTag("MeterFull", ({ used }) => Effect.fail(new QuotaExceeded({ plan: planOf(caller), used, limit: cap }))),
        // Any version will do, so none can be wrong.
        Effect.catchTag("StreamMoved", Effect.die)
      )
    return { position: appended.position, usage: { used: appended.used, limit: cap } }
  })

  return Metering.of({ record })
})

export const layer = Layer.effect(Metering, make)

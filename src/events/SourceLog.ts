/** The history of the sources in the log. */
import { Effect, Layer } from "effect"
import { SourceLog, sourceStream } from "#domain/Sources.ts"
import { EventStore } from "#events/EventStore.ts"

export const layer = Layer.effect(
  SourceLog,
  Effect.map(EventStore, (events) => ({
    record: (source, event) =>
      events.append({ stream: sourceStream(source), expectedVersion: null, events: [event], charge: null, latestOf: null }).pipe(
        Effect.asVoid,
        // Any version will do and nothing is charged, so neither can happen.
        Effect.catchTag(["StreamMoved", "MeterFull"], Effect.die)
      )
  }))
)

/** Appends an event when a source becomes degraded or unavailable, or recovers. */
import { Effect, Layer } from "effect"
import { SourceLog, sourceStream } from "#domain/vat/Sources.ts"
import { EventStore } from "#events/log/store/EventStore.ts"

export const layer = Layer.effect(
  SourceLog,
  Effect.map(EventStore, (events) => ({
    record: (source, event) => Effect.asVoid(events.appendFact(sourceStream(source), event))
  }))
)

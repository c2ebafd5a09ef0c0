/** Compares the data of events with the schemas of their types (docs/events.md). The program stores no event that differs from its schema. */
import { Effect, Result, Schema } from "effect"
import type { Findings } from "#events/log/verify/Findings.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { EventTypes } from "#events/log/store/EventTypes.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Creates a function that compares an event. Reports nothing for a type that this version of the program does not know. */
export const make = Effect.fnUntraced(function* (findings: Findings) {
  const decoders = new Map(
    (yield* EventTypes).map(({ schema, schemaVersion, type }) => [
      `${type}/${schemaVersion}`,
      Schema.decodeUnknownResult(Schema.toCodecJson(schema))
    ])
  )
  return (event: StoredEvent) => {
    const decode = decoders.get(`${event.type}/${event.schema_version}`)
    if (decode !== undefined && Result.isFailure(decode(EventLine.readData(event))))
      findings.add(event.position, `the data of the event does not have the form of ${event.type}`)
  }
})

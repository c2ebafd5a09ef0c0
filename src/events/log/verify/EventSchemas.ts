/** Compares the data of events with the schemas of their types (docs/events.md). The program stores no event that differs from its schema. */
import { Option, Result, Schema } from "effect"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import type { Findings } from "#events/log/verify/Findings.ts"
import * as Catalogue from "#events/Catalogue.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

const decoderOf = (schema: Schema.Codec<unknown, unknown>) => Schema.decodeUnknownResult(Schema.toCodecJson(schema))

const decoders: ReadonlyMap<string, ReturnType<typeof decoderOf>> = new Map(
  Catalogue.eventTypes.map(({ schema, schemaVersion, type }) => [`${type}/${schemaVersion}`, decoderOf(schema)])
)

const decodeServed = Schema.decodeUnknownOption(Schema.Struct({ served: Schema.String }))

/** Creates a function that compares an event. Reports nothing for a type that this version of the program does not know. */
export const make = (findings: Findings) => (event: StoredEvent) => {
  const decode = decoders.get(`${event.type}/${event.schema_version}`)
  if (decode === undefined) return
  const data = EventLine.readData(event)
  if (Result.isFailure(decode(data)))
    return findings.add(event.position, `the data of the event does not have the form of ${event.type}`)
  if (event.type !== VatIdVerified.type) return
  const isLive = Option.exists(decodeServed(data), ({ served }) => served === "live")
  const hasDocument = Option.isSome(PersonalDocument.digestIn(data))
  if (isLive && !hasDocument) findings.add(event.position, "the event claims a live answer, but it has no personal document")
}

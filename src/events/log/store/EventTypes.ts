/** Decodes the stored data of events and their personal documents. */
import { Effect, Schema } from "effect"
import type { EventType, PersonalEventType } from "#domain/log/DomainEvent.ts"

/** Creates a decoder for the stored data of an event type. A decoding error is a defect, because this service wrote all events. */
export const decoder = <A>(eventType: EventType<A>): ((data: string) => Effect.Effect<A>) => reader(eventType.schema)

/** Creates a decoder for the personal documents of an event type. A decoding error is a defect. */
export const documentDecoder = <A, P>({ personal }: PersonalEventType<A, P>): ((document: string) => Effect.Effect<P>) =>
  reader(personal)

const reader = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(schema)))
  return (json: string) => decode(json).pipe(Effect.catchTag("SchemaError", Effect.die))
}

/** The event types of a product, and the decoders of stored events. */
import { Context, Effect, Schema } from "effect"
import type { EventType, PersonalEventType } from "#domain/log/DomainEvent.ts"
import { LogAdopted } from "#domain/log/LogAdopted.ts"
import { LogOpened } from "#domain/log/LogPurpose.ts"
import { LogExported, LogVerified, ProjectionCorrected } from "#domain/log/LogReadEvents.ts"
import { PersonalDataErased, PersonalDataHeld, PersonalDataReleased } from "#domain/log/PersonalData.ts"

/** All event types that the log of a product can contain. */
export class EventTypes extends Context.Service<
  EventTypes,
  ReadonlyArray<Pick<EventType<unknown>, "type" | "schemaVersion" | "schema">>
>()("vatproof/events/log/store/EventTypes") {}

/** The event types that the log has itself. */
export const logEventTypes = [
  LogAdopted,
  LogExported,
  LogOpened,
  LogVerified,
  PersonalDataErased,
  PersonalDataHeld,
  PersonalDataReleased,
  ProjectionCorrected
]

/** Creates a decoder for the stored data of an event type. A decoding error is a defect, because this service wrote all events. */
export const decoder = <A>(eventType: EventType<A>): ((data: string) => Effect.Effect<A>) => reader(eventType.schema)

/** Creates a decoder for the personal documents of an event type. A decoding error is a defect. */
export const documentDecoder = <A, P>({ personal }: PersonalEventType<A, P>): ((document: string) => Effect.Effect<P>) =>
  reader(personal)

const reader = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(schema)))
  return (json: string) => decode(json).pipe(Effect.catchTag("SchemaError", Effect.die))
}

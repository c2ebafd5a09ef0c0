/** Defines event types: a name, a version whose meaning never changes, and a schema of the data. */
import { type DateTime, Schema } from "effect"
import type { PersonalData } from "#domain/log/PersonalData.ts"
import type { RetentionClass } from "#domain/log/Retention.ts"

/** An event to be appended: `data` is plain JSON. */
export interface DomainEvent {
  readonly type: string
  readonly schemaVersion: number
  readonly data: Schema.Json
  /** When the fact happened, if that is before the append. */
  readonly occurredAt?: DateTime.Utc
  /** Data that must be erasable. The log stores it beside the event and adds its digest to `data`. */
  readonly personal?: PersonalData
}

/**
 * The computed id of an event. The log stores at most one event with this id. `causationId` is the task that the event closes;
 * null if it closes none.
 */
export interface EventIdentity {
  readonly eventId: string
  readonly causationId: string | null
}

/**
 * One version of an event type. A released version is never edited. Changed data needs a new version, and a function in the
 * catalogue (an upcaster) that converts stored data of the old version.
 */
export interface EventType<A> {
  readonly type: string
  readonly schemaVersion: number
  readonly schema: Schema.Codec<A, unknown>
  readonly make: (value: A) => DomainEvent
  /** Returns the data of an event of this type. An event of another type is a defect, because the caller must check `type`. */
  readonly read: (event: DomainEvent) => A
}

/** Defines an event type without personal data. */
export const define = <A, I>(type: string, schemaVersion: number, schema: Schema.Codec<A, I>): EventType<A> => {
  const codec = Schema.toCodecJson(schema)
  const encode = Schema.encodeSync(codec)
  const decode = Schema.decodeUnknownSync(codec)
  return {
    type,
    schemaVersion,
    schema,
    make: (value) => ({ type, schemaVersion, data: encode(value) }),
    read: (event) => decode(event.data)
  }
}

/** An event type with personal data, stored in an erasable document beside the event. */
export interface PersonalEventType<A, P> extends EventType<A> {
  readonly personal: Schema.Codec<P, unknown>
  /** Without `personal` the event has no document. */
  readonly make: (value: A, personal?: P) => DomainEvent
}

/**
 * The digest of the document beside the event, and the end of its retention period; absent without a document. The log sets both.
 */
export const personalDigest = {
  personal_sha256: Schema.optionalKey(Schema.String),
  retain_until: Schema.optionalKey(Schema.String)
}

/**
 * Defines an event type with personal data. Its schema must include
 * `personalDigest`. `personal` is the schema of the document without its salt.
 */
export const definePersonal = <A, I, P, J>(
  eventType: readonly [type: string, schemaVersion: number, schema: Schema.Codec<A, I>],
  personal: Schema.Codec<P, J>,
  retention: RetentionClass
): PersonalEventType<A, P> => {
  const defined = define(...eventType)
  const encode = Schema.encodeSync(Schema.toCodecJson(personal))
  return {
    ...defined,
    personal,
    make: (value, document) => {
      const event = defined.make(value)
      return document === undefined ? event : { ...event, personal: { retention, document: encode(document) } }
    }
  }
}

/** How a past fact is defined: a type, a version that never changes its meaning, and a schema of its data. */
import { Schema } from "effect"

/** A fact as it is handed to the log: `data` is plain JSON. */
export interface DomainEvent {
  readonly type: string
  readonly schemaVersion: number
  readonly data: Schema.Json
}

/** One version of one event type. A stored version is never edited: a change is a new version and an upcaster in the catalogue. */
export interface EventType<A> {
  readonly type: string
  readonly schemaVersion: number
  readonly schema: Schema.Codec<A, unknown>
  readonly make: (value: A) => DomainEvent
  /** The data of an event of this type. Anything else is a defect: whoever asks has looked at `type`. */
  readonly read: (event: DomainEvent) => A
}

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

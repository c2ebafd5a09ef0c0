/** Personal data beside the log: documents, and the events of their erasure (rule 55). */
import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import type { RetentionClass } from "#domain/log/Retention.ts"

/** The document of an event, without its salt. */
export interface PersonalData {
  readonly retention: RetentionClass
  readonly document: Schema.Json
}

/** Name of the stream for events about personal documents. */
export const personalDataStream = "personal-data"

/** Maximum number of `positions` in an event: the positions of the events whose documents it changes. */
export const maxPositions = 100
const positions = Schema.Array(Schema.Int)

/**
 * The personal documents of the events at these positions were erased: on request (the metadata has the reason), or because their
 * retention period ended. The events and their proofs stay.
 */
export const PersonalDataErased = DomainEvent.define(
  "PersonalDataErased",
  1,
  Schema.Struct({ positions, cause: Schema.Literals(["request", "retention"]) })
)

/** A legal hold was set on the personal documents of the events at these positions. They must not be erased. */
export const PersonalDataHeld = DomainEvent.define("PersonalDataHeld", 1, Schema.Struct({ positions }))

/** The legal hold on the personal documents of the events at these positions was lifted. */
export const PersonalDataReleased = DomainEvent.define("PersonalDataReleased", 1, Schema.Struct({ positions }))

/** Personal data beside the log: documents, and the events of their erasure (rule 55). */
import { Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { RetentionClass } from "#domain/kernel/Retention.ts"

/** The caller's own invoice or order number (rule 35), as documents store it: absent if none was supplied. */
export const Reference = Schema.Struct({ reference: Schema.optionalKey(Schema.String) })

/** Returns the document part for a reference; undefined without one. */
export const referenceIn = (reference: string | null) => (reference === null ? undefined : { reference })

/** The document of an event, without its salt. */
export interface PersonalData {
  readonly retention: RetentionClass
  readonly document: Schema.Json
}

/** The stream of events about personal documents. */
export const personalDataStream = "personal-data"

/** Positions of the events whose documents are affected; at most `maxPositions` per event. */
export const maxPositions = 100
const positions = Schema.Array(Schema.Int)

/**
 * The personal documents of these positions were erased: on request (see the reason in the metadata), or because their retention
 * period ended. The events and their proofs stay.
 */
export const PersonalDataErased = DomainEvent.define(
  "PersonalDataErased",
  1,
  Schema.Struct({ positions, cause: Schema.Literals(["request", "retention"]) })
)

/** An operator read the personal documents about a VAT ID, of a receipt or of an account: `documents` is their number. */
export const PersonalDataShown = DomainEvent.define(
  "PersonalDataShown",
  1,
  Schema.Struct({
    account_id: Schema.NullOr(Schema.String),
    documents: Schema.Int,
    receipt_id: Schema.NullOr(Schema.String),
    vat_id: Schema.NullOr(Schema.String)
  })
)

/** A legal hold was set on the personal documents of these positions: they must not be erased. */
export const PersonalDataHeld = DomainEvent.define("PersonalDataHeld", 1, Schema.Struct({ positions }))

/** The legal hold on the personal documents of these positions was lifted. */
export const PersonalDataReleased = DomainEvent.define("PersonalDataReleased", 1, Schema.Struct({ positions }))

/** Personal data beside the log: retention periods, and the events of its erasure (rule 55). */
import { Context, DateTime, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"

/** The retention classes: receipts, and all other answers of a source. */
export type RetentionClass = "receipts" | "answers"

/** The caller's own invoice or order number (rule 35), as documents store it: absent if none was supplied. */
export const Reference = Schema.Struct({ reference: Schema.optionalKey(Schema.String) })

/** Returns the document part for a reference; undefined without one. */
export const referenceIn = (reference: string | null) => (reference === null ? undefined : { reference })

/** The document of an event, without its salt. */
export interface PersonalData {
  readonly retention: RetentionClass
  readonly document: Schema.Json
}

/** Whole years from the end of the calendar year (§ 147 AO), or days from the answer. */
export type RetentionPeriod = { readonly years: number } | { readonly days: number }

/** Retention periods; set by the configuration. */
export const Retention = Context.Reference<Readonly<Record<RetentionClass, RetentionPeriod>>>(
  "vatproof/domain/kernel/Retention",
  {
    defaultValue: () => ({ receipts: { years: 10 }, answers: { years: 10 } })
  }
)

/** Returns the end of the retention period of a document created at `at`. */
export const retainUntil = (period: RetentionPeriod, at: DateTime.Utc): DateTime.Utc => {
  if ("days" in period) return DateTime.add(at, { days: period.days })
  // The calendar year is Germany's, which begins at 23:00 UTC. The end is that of the year in UTC, an hour later.
  const year = DateTime.getPartUtc(DateTime.add(at, { hours: 1 }), "year")
  return DateTime.makeUnsafe({ year: year + period.years + 1, month: 1, day: 1 })
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

/** A legal hold was set on the personal documents of these positions: they must not be erased. */
export const PersonalDataHeld = DomainEvent.define("PersonalDataHeld", 1, Schema.Struct({ positions }))

/** The legal hold on the personal documents of these positions was lifted. */
export const PersonalDataReleased = DomainEvent.define("PersonalDataReleased", 1, Schema.Struct({ positions }))

/** Personal data beside the log: how long a document is kept, and what became of it (rule 55). */
import { Context, DateTime, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"

/** Receipts, and all other answers of a source. */
export type RetentionClass = "receipts" | "answers"

/** The caller's own number of an invoice or order (rule 35), as documents have it: absent if none was supplied. */
export const Reference = Schema.Struct({ reference: Schema.optionalKey(Schema.String) })

/** The part of a document that a reference is; undefined without one. */
export const referenceIn = (reference: string | null) => (reference === null ? undefined : { reference })

/** The document of an event, without its salt. */
export interface PersonalData {
  readonly retention: RetentionClass
  readonly document: Schema.Json
}

/** Whole years from the end of the calendar year (§ 147 AO), or days from the answer. */
export type RetentionPeriod = { readonly years: number } | { readonly days: number }

/** How long documents are kept; the configuration sets it. */
export const Retention = Context.Reference<Readonly<Record<RetentionClass, RetentionPeriod>>>(
  "vatproof/domain/kernel/Retention",
  {
    defaultValue: () => ({ receipts: { years: 10 }, answers: { years: 10 } })
  }
)

/** The moment until which a document from `at` is kept. */
export const retainUntil = (period: RetentionPeriod, at: DateTime.Utc): DateTime.Utc => {
  if ("days" in period) return DateTime.add(at, { days: period.days })
  // The calendar year is that of Germany, whose new year is at 23:00 UTC. The end is that of the year in UTC, an hour later.
  const year = DateTime.getPartUtc(DateTime.add(at, { hours: 1 }), "year")
  return DateTime.makeUnsafe({ year: year + period.years + 1, month: 1, day: 1 })
}

/** The stream of what was done to personal documents. */
export const personalDataStream = "personal-data"

/** Positions of the events whose documents are meant; one event names at most `maxPositions`. */
export const maxPositions = 100
const positions = Schema.Array(Schema.Int)

/**
 * The personal documents of these positions were erased: on request, for the reason in the metadata, or because their retention period was over.
 * The events and their proofs stay.
 */
export const PersonalDataErased = DomainEvent.define(
  "PersonalDataErased",
  1,
  Schema.Struct({ positions, cause: Schema.Literals(["request", "retention"]) })
)

/** A legal hold was put on the personal documents of these positions: they must not be erased. */
export const PersonalDataHeld = DomainEvent.define("PersonalDataHeld", 1, Schema.Struct({ positions }))

/** The legal hold on the personal documents of these positions was lifted. */
export const PersonalDataReleased = DomainEvent.define("PersonalDataReleased", 1, Schema.Struct({ positions }))

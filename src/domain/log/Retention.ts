/** Retention periods of personal documents (rule 55). */
import { Context, DateTime } from "effect"

/** The retention classes: receipts, and all other answers of a source. */
export type RetentionClass = "receipts" | "answers"

/** A number of years from the end of the calendar year (§ 147 AO), or a number of days from the time of the answer. */
export type RetentionPeriod = { readonly years: number } | { readonly days: number }

/** The retention period of each class. The settings replace the default of 10 years. */
export const Retention = Context.Reference<Readonly<Record<RetentionClass, RetentionPeriod>>>("vatproof/domain/log/Retention", {
  defaultValue: () => ({ receipts: { years: 10 }, answers: { years: 10 } })
})

/** Returns the end of the retention period of a document created at `at`. */
export const retainUntil = (period: RetentionPeriod, at: DateTime.Utc): DateTime.Utc => {
  if ("days" in period) return DateTime.add(at, { days: period.days })
  // In Germany the year begins at 23:00 UTC on 31 December. An answer after that time therefore belongs to the next German year.
  // The period ends at the end of a year in UTC, one hour after the end of the German year.
  const year = DateTime.getPartUtc(DateTime.add(at, { hours: 1 }), "year")
  return DateTime.makeUnsafe({ year: year + period.years + 1, month: 1, day: 1 })
}

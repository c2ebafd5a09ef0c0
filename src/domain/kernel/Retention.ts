/** Retention periods of personal documents (rule 55). */
import { Context, DateTime } from "effect"

/** The retention classes: receipts, and all other answers of a source. */
export type RetentionClass = "receipts" | "answers"

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

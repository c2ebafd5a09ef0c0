/** The bounds of a period of the log, as auditors write them over HTTP and on the command line: a moment, or a day in UTC. */
import { DateTime, Option } from "effect"
import { calendarDate } from "#domain/kernel/CalendarDate.ts"

/**
 * RFC 3339, optionally with a space instead of T as Postgres writes it, without seconds, or without zone (UTC). Rejects
 * microseconds, which events have: truncating them would exclude the event that the bound was copied from.
 */
const written = /^(?<date>\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/iu

/**
 * Returns the start of a period; for a day its beginning. None for any other text: JavaScript parses almost anything as a time,
 * and an audit of the wrong period looks like one of the right period.
 */
export const startOf = (text: string): Option.Option<DateTime.Utc> => {
  const date = written.exec(text)?.groups?.["date"]
  if (date === undefined || Option.isNone(calendarDate(date))) return Option.none()
  return Option.map(DateTime.make(text.toUpperCase().replace(" ", "T")), DateTime.toUtc)
}

/** Returns the exclusive end of a period; a day is included as a whole. None for any other text. */
export const endOf = (text: string): Option.Option<DateTime.Utc> =>
  Option.orElse(
    Option.map(calendarDate(text), (start) => DateTime.add(start, { days: 1 })),
    () => startOf(text)
  )

/** The bounds of a time of the log, as auditors write them over HTTP and on the command line: a moment, or a day in UTC. */
import { DateTime, Option } from "effect"
import { calendarDate } from "#domain/kernel/CalendarDate.ts"

/**
 * RFC 3339, also with a space as Postgres writes it, without seconds, or without a zone, which is UTC then. Microseconds, which events have,
 * would be cut off, and with them the event that a bound was copied from.
 */
const written = /^(?<date>\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/iu

/**
 * The moment from which on; a day is meant from its beginning. None if the text names no time: JavaScript would read nearly anything as one, and
 * an audit of another time than was meant looks like one of the right time.
 */
export const startOf = (text: string): Option.Option<DateTime.Utc> => {
  const date = written.exec(text)?.groups?.["date"]
  if (date === undefined || Option.isNone(calendarDate(date))) return Option.none()
  return Option.map(DateTime.make(text.toUpperCase().replace(" ", "T")), DateTime.toUtc)
}

/** The moment before which; a day that something ends with is meant as a whole. None if the text names no time. */
export const endOf = (text: string): Option.Option<DateTime.Utc> =>
  Option.orElse(
    Option.map(calendarDate(text), (start) => DateTime.add(start, { days: 1 })),
    () => startOf(text)
  )

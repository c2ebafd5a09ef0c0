/** The bounds of a period of the log, as auditors write them over HTTP and on the command line: a moment, or a day in UTC. */
import { DateTime, Option } from "effect"
import { calendarDate } from "#domain/kernel/CalendarDate.ts"

/**
 * A day, or a time in RFC 3339. The time may have a space instead of T, as Postgres writes it, and may lack seconds or the zone (UTC).
 * Microseconds are rejected: JavaScript would truncate them, and a bound copied from an event would then exclude that event.
 */
const written = /^(?<date>\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/iu

/**
 * Returns the inclusive start of a period: the time, or the beginning of the day. None for any other text, because JavaScript parses
 * almost any text as a time, and an audit of the wrong period looks correct.
 */
export const startOf = (text: string): Option.Option<DateTime.Utc> => {
  const date = written.exec(text)?.groups?.["date"]
  if (date === undefined || Option.isNone(calendarDate(date))) return Option.none()
  return Option.map(DateTime.make(text.toUpperCase().replace(" ", "T")), DateTime.toUtc)
}

/** Returns the exclusive end of a period: the time, or the end of the day. None for any other text. */
export const endOf = (text: string): Option.Option<DateTime.Utc> =>
  Option.orElse(
    Option.map(calendarDate(text), (start) => DateTime.add(start, { days: 1 })),
    () => startOf(text)
  )

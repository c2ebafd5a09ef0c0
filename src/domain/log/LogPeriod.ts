/**
 * Parses the start and the end of a period of the log, which auditors send over HTTP and operators pass to commands. Each is a
 * time, or a day in UTC.
 */
import { DateTime, Option } from "effect"
import { calendarDate } from "#domain/text/CalendarDate.ts"

/**
 * A day, or a time in RFC 3339. The time may have a space instead of T, as Postgres writes it, and may lack seconds or the zone (UTC).
 * Microseconds are rejected: JavaScript would truncate them, and a bound copied from an event would then exclude that event.
 */
const boundForm = /^(?<date>\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/iu

/**
 * Returns the inclusive start of a period: the time, or the beginning of the day. Returns none for any other text. JavaScript
 * would parse almost any text as a time, and an audit of the wrong period would look correct.
 */
export const startOf = (text: string): Option.Option<DateTime.Utc> => {
  const date = boundForm.exec(text)?.groups?.["date"]
  if (date === undefined || Option.isNone(calendarDate(date))) return Option.none()
  return Option.map(DateTime.make(text.toUpperCase().replace(" ", "T")), DateTime.toUtc)
}

/** Returns the exclusive end of a period: the time, or the end of the day. Returns none for any other text. */
export const endOf = (text: string): Option.Option<DateTime.Utc> =>
  Option.orElse(
    Option.map(calendarDate(text), (start) => DateTime.add(start, { days: 1 })),
    () => startOf(text)
  )

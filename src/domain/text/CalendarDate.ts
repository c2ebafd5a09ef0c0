/** Days in ISO 8601. */
import { DateTime, Option } from "effect"

const germany = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")

/** Returns the day in German time as `YYYY-MM-DD`. */
export const germanDay = (at: DateTime.Utc): string => DateTime.formatIsoDate(DateTime.setZone(at, germany))

const form = /^\d{4}-\d\d-\d\d$/u

/**
 * Returns the beginning in UTC of the day `YYYY-MM-DD`; none if the day does not exist (JavaScript reads 31 November as 1
 * December).
 */
export const calendarDate = (text: string): Option.Option<DateTime.Utc> =>
  form.test(text)
    ? Option.filter(Option.map(DateTime.make(text), DateTime.toUtc), (day) => DateTime.formatIsoDateUtc(day) === text)
    : Option.none()

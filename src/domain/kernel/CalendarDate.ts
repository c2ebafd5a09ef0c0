/** Days as ISO 8601 writes them. */
import { DateTime, Option } from "effect"

const form = /^\d{4}-\d\d-\d\d$/u

/** The beginning in UTC of the day that `YYYY-MM-DD` names; none if there is no such day, where JavaScript takes 31 November for 1 December. */
export const calendarDate = (text: string): Option.Option<DateTime.Utc> =>
  form.test(text)
    ? Option.filter(Option.map(DateTime.make(text), DateTime.toUtc), (found) => DateTime.formatIsoDateUtc(found) === text)
    : Option.none()

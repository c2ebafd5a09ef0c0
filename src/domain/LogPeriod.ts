/** The bounds of a time of the log, as auditors write them over HTTP and on the command line: a moment, or a day in UTC. */
import { DateTime, Option } from "effect"

const day = /^\d{4}-\d\d-\d\d$/u

/** The moment from which on; a day is meant from its beginning. None if the text names no time. */
export const startOf = (text: string): Option.Option<DateTime.Utc> => Option.map(DateTime.make(text), DateTime.toUtc)

/** The moment before which; a day that something ends with is meant as a whole. None if the text names no time. */
export const endOf = (text: string): Option.Option<DateTime.Utc> =>
  Option.map(startOf(text), (start) => (day.test(text) ? DateTime.add(start, { days: 1 }) : start))

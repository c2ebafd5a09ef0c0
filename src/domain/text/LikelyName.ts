/** Finds the intended name of a misspelled query parameter or setting. A typo is an error and not ignored (rule 11). */
import { Option } from "effect"

/** Maximum edit distance between a misspelled and the intended name. */
const maxEdits = 2

/** Returns a known name that is similar to an unknown one; none if no name is similar, or if the name is known. */
export const likelyName = (name: string, known: ReadonlyArray<string>): Option.Option<string> =>
  known.includes(name) ? Option.none() : Option.fromNullOr(known.find((candidate) => isNear(name, candidate)) ?? null)

const isNear = (one: string, other: string) =>
  Math.abs(one.length - other.length) <= maxEdits && editsBetween(one, other) <= maxEdits

/** The Levenshtein distance. */
const editsBetween = (one: string, other: string) => {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [index, letter] of [...one].entries()) {
    const next = [index + 1]
    for (const [column, otherLetter] of [...other].entries()) {
      const kept = (row[column] ?? 0) + (letter === otherLetter ? 0 : 1)
      next.push(Math.min(kept, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Reads batches as JSON item by item. Parsing the whole document would need too much memory. */
import { Option } from "effect"
import { decodeJson, done, invalid, type MakeReader } from "#http/pending/BatchItems.ts"

const beginning = /^\s*\{\s*"items"\s*:\s*\[/u
const separator = /^\s*,/u
const ending = /^\s*\]\s*\}$/u
const problem = 'The body must be {"items": [{"custom_id": …, "vat_id": …}, …]}'

/** Reads `{"items": [{…}, {…}]}`. Each record ends with a closing brace: `{"items": [{…}`, `, {…}`, `]}`. */
export const jsonReader: MakeReader = (add) => {
  let state: "first" | "further" | "after" = "first"
  return {
    record: (text, line) => {
      const before = state === "after" ? null : (state === "first" ? beginning : separator).exec(text)
      const rest = text.slice(before?.[0].length ?? 0)
      if (state === (before === null ? "further" : "first") && ending.test(rest)) {
        state = "after"
        return done
      }
      const object = rest.trimStart()
      if (before === null || !object.startsWith("{")) return invalid(line, problem)
      state = "further"
      const itemLine = line + text.slice(0, -object.length).split("\n").length - 1
      return Option.match(decodeJson(object), {
        // A nested object ends the record too early.
        onNone: () => invalid(itemLine, "Invalid JSON, or an object in an item"),
        onSome: (value) => add(value, itemLine)
      })
    },
    end: (line) => (state === "after" ? done : invalid(line, problem))
  }
}

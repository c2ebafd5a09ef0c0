/** Reads batches as JSON item by item. Parsing the whole document would need too much memory. */
import { Option, Result } from "effect"
import { decodeJson, done, jsonItemTooLong, type MakeReader, maxJsonItem, notJson } from "#http/validation/BatchItems.ts"

/** Reads `{"items": [{…}, …]}`. Items contain no objects, so an item ends at the first closing brace outside of a string. */
export const jsonReader: MakeReader = (add) => {
  const problem = 'The body must be {"items": [{"custom_id": …, "vat_id": …}, …]}'
  let state: "before" | "first" | "between" | "item" | "after" = "before"
  let text = ""
  const take = (part: RegExp) => {
    const match = part.exec(text)
    if (match !== null) text = text.slice(match[0].length)
    return match?.[0]
  }
  const step = (): Result.Result<boolean, string> => {
    switch (state) {
      case "before":
        if (take(/^\s*\{\s*"items"\s*:\s*\[\s*/u) === undefined)
          return text.length > 200 ? Result.fail(problem) : Result.succeed(false)
        state = "first"
        return Result.succeed(true)
      case "first":
      case "between":
        take(/^\s+/u)
        if (text === "") return Result.succeed(false)
        if (take(/^\]/u) !== undefined) {
          state = "after"
          return Result.succeed(true)
        }
        if (state === "between" && take(/^,\s*/u) === undefined) return Result.fail(problem)
        state = "item"
        return Result.succeed(true)
      case "item": {
        take(/^\s+/u)
        const object = take(/^\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}/u)
        if (object === undefined) {
          if (text !== "" && !text.startsWith("{")) return Result.fail(problem)
          if (text.length <= maxJsonItem) return Result.succeed(false)
          // Another opening brace begins an object in the item.
          return Result.fail(text.includes("{", 1) ? problem : jsonItemTooLong)
        }
        const value = decodeJson(object)
        state = "between"
        return Result.map(Option.isSome(value) ? add(value.value) : Result.fail(notJson), () => true)
      }
      case "after":
        return text.length > 200 ? Result.fail(problem) : Result.succeed(false)
    }
  }
  return {
    line: (more) => {
      text += more
      while (true) {
        const progress = step()
        if (Result.isFailure(progress)) return Result.fail(progress.failure)
        if (!progress.success) return done
      }
    },
    end: () => (state === "after" && /^\s*\}\s*$/u.test(text) ? done : Result.fail(problem))
  }
}

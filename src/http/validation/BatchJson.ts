/** Batches as JSON, read item by item: the whole would need too much memory. */
import { Option, Result } from "effect"
import { decodeJson, done, type MakeReader, maxLine, notJson } from "#http/validation/BatchItems.ts"

/** Reads `{"items": [{…}, …]}`: the items have no objects inside, so each ends with the first brace outside of a text. */
export const jsonReader: MakeReader = (add) => {
  const wrong = 'The body must be {"items": [{"custom_id": …, "vat_id": …}, …]}'
  let place: "before" | "first" | "between" | "item" | "after" = "before"
  let text = ""
  const take = (part: RegExp) => {
    const found = part.exec(text)
    if (found !== null) text = text.slice(found[0].length)
    return found?.[0]
  }
  const step = (): Result.Result<boolean, string> => {
    switch (place) {
      case "before":
        if (take(/^\s*\{\s*"items"\s*:\s*\[\s*/u) === undefined)
          return text.length > 200 ? Result.fail(wrong) : Result.succeed(false)
        place = "first"
        return Result.succeed(true)
      case "first":
      case "between":
        take(/^\s+/u)
        if (text === "") return Result.succeed(false)
        if (take(/^\]/u) !== undefined) {
          place = "after"
          return Result.succeed(true)
        }
        if (place === "between" && take(/^,\s*/u) === undefined) return Result.fail(wrong)
        place = "item"
        return Result.succeed(true)
      case "item": {
        take(/^\s+/u)
        const object = take(/^\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\}/u)
        if (object === undefined) {
          return text !== "" && (!text.startsWith("{") || text.length > maxLine) ? Result.fail(wrong) : Result.succeed(false)
        }
        const value = decodeJson(object)
        place = "between"
        return Result.map(Option.isSome(value) ? add(value.value) : Result.fail(notJson), () => true)
      }
      case "after":
        return text.length > 200 ? Result.fail(wrong) : Result.succeed(false)
    }
  }
  return {
    line: (more) => {
      text += more
      while (true) {
        const moved = step()
        if (Result.isFailure(moved)) return Result.fail(moved.failure)
        if (!moved.success) return done
      }
    },
    end: () => (place === "after" && /^\s*\}\s*$/u.test(text) ? done : Result.fail(wrong))
  }
}

/** The items of an upload, and what its readers have in common. */
import { Option, Result, Schema } from "effect"
import { batchItems, type BatchItem } from "#domain/pending/Batch.ts"
import { plainText } from "#domain/kernel/PlainText.ts"

export const Item = Schema.Struct({
  custom_id: plainText({ min: 1, max: 100 }).annotate({
    description: "Your own id of the item, told with its result",
    examples: ["customer-4711"]
  }),
  vat_id: plainText({ min: 0, max: 100 }).annotate({
    description: "As in GET /v1/validate/{vat_id}. One of wrong form stops no other: its result is `invalid_format`",
    examples: ["DE123456789"]
  })
})

/** Bytes of a line. */
export const maxLine = 1024

/** The failure says what is wrong with the text. */
export type Read = Result.Result<void, string>
export const done: Read = Result.succeed(undefined)

/** Reads the text of one form, line by line without line ends, and gives its items to `add`. */
export interface LineReader {
  readonly line: (text: string) => Read
  readonly end: () => Read
}
export type MakeReader = (add: (value: unknown) => Read) => LineReader

const decodeItem = Schema.decodeUnknownResult(Item, { onExcessProperty: "error", errors: "all" })
export const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
export const notJson = "This is not JSON"

/** Adds what is an item to a list that others empty. */
export const makeItems = () => {
  let read: Array<BatchItem> = []
  let count = 0
  return {
    add: (value: unknown): Read => {
      const item = decodeItem(value)
      if (Result.isFailure(item)) return Result.fail(`Item ${count + 1}: ${item.failure.message.replaceAll(/\s+/gu, " ")}`)
      if (count === batchItems.most) return Result.fail(`A batch has at most ${batchItems.most} items`)
      count += 1
      read.push({ customId: item.success.custom_id, input: item.success.vat_id })
      return done
    },
    /** What was read since the last time. */
    take: (): ReadonlyArray<BatchItem> => {
      const taken = read
      read = []
      return taken
    },
    isEmpty: () => count === 0
  }
}

export const ndjsonReader: MakeReader = (add) => ({
  line: (text) => {
    if (text.trim() === "") return done
    return Option.match(decodeJson(text), { onNone: () => Result.fail(notJson), onSome: add })
  },
  end: () => done
})

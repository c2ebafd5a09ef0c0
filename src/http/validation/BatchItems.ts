/** Validates and collects the items of an upload, for the readers of all formats. */
import { Option, Result, Schema } from "effect"
import { batchItems, type BatchItem } from "#domain/pending/Batch.ts"
import { plainText } from "#domain/kernel/PlainText.ts"

export const Item = Schema.Struct({
  custom_id: plainText({ min: 1, max: 100 }).annotate({
    description: "Your own id of the item, returned with its result",
    examples: ["customer-4711"]
  }),
  vat_id: plainText({ min: 0, max: 100 }).annotate({
    description:
      "As in GET /v1/validate/{vat_id}. A malformed VAT ID does not affect other items; its result is `invalid_format`",
    examples: ["DE123456789"]
  })
})

/** Maximum number of bytes of a line of NDJSON or CSV. */
export const maxLine = 1024
/** Maximum number of bytes of an item in JSON, which may have several lines. */
export const maxJsonItem = 2048

export const lineTooLong = `The line has more than the maximum of ${maxLine} bytes`
export const jsonItemTooLong = `The item has more than the maximum of ${maxJsonItem} bytes`

/** The result of reading a part of an upload. A failure describes the problem to the caller. */
export type Read = Result.Result<void, string>
export const done: Read = Result.succeed(undefined)

/** Reads an upload in one format. `line` reads the next line, `end` checks that the upload is complete. */
export interface LineReader {
  readonly line: (text: string) => Read
  readonly end: () => Read
}
/** Creates the reader of an upload. The reader passes each item to `add`. */
export type MakeReader = (add: (value: unknown) => Read) => LineReader

const decodeItem = Schema.decodeUnknownResult(Item, { onExcessProperty: "error", errors: "all" })
export const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
export const notJson = "Invalid JSON"

/** Creates a collector of items. `add` validates a value and collects it as an item. */
export const makeItems = () => {
  let read: Array<BatchItem> = []
  let count = 0
  return {
    add: (value: unknown): Read => {
      const item = decodeItem(value)
      if (Result.isFailure(item)) return Result.fail(`Item ${count + 1}: ${item.failure.message.replaceAll(/\s+/gu, " ")}`)
      if (count === batchItems.max) return Result.fail(`The upload has more than ${batchItems.max} items, the maximum of a batch`)
      count += 1
      read.push({ customId: item.success.custom_id, input: item.success.vat_id })
      return done
    },
    /** Returns and removes the collected items. */
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

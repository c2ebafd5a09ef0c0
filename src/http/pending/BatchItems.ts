/** Validates and collects the items of an upload, for the readers of all formats. */
import { Option, Result, Schema } from "effect"
import { batchItems, type BatchItem } from "#domain/pending/Batch.ts"
import { plainText } from "#domain/text/PlainText.ts"
import { documentOf } from "#domain/validation/ValidationTask.ts"
import { companyFields, companyOf, requesterVatId } from "#http/validation/ValidationApi.ts"

export const Item = Schema.Struct({
  custom_id: plainText({ min: 1, max: 100 }).annotate({
    description: "Your own id of the item, returned with its result. Each item of a batch has another one",
    examples: ["customer-4711"]
  }),
  vat_id: plainText({ min: 0, max: 100 }).annotate({
    description:
      "As in GET /v1/validate/{vat_id}. A malformed VAT ID does not affect other items; its result is `invalid_format`",
    examples: ["DE123456789"]
  }),
  requester_vat_id: requesterVatId,
  ...companyFields,
  reference: Schema.optionalKey(
    plainText({ min: 0, max: 100 }).annotate({ description: "Your own invoice or order number, returned with the result" })
  )
})

/**
 * Maximum number of bytes of an item: of a line of NDJSON, of a row of CSV, and of an object in JSON with the text before it. It also
 * bounds the lines of an item.
 */
export const maxItem = 2048

/** The upload is invalid and rejected as a whole. `line` is the number of the invalid line, from 1; null if no single line is invalid. */
export class InvalidUpload extends Schema.TaggedError<InvalidUpload>()("InvalidUpload", {
  line: Schema.NullOr(Schema.Int),
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

/** The result of reading a part of an upload. */
export type Read = Result.Result<void, InvalidUpload>
export const done: Read = Result.succeed(undefined)
export const invalid = (line: number | null, problem: string): Result.Result<never, InvalidUpload> =>
  Result.fail(new InvalidUpload({ line, problem }))

/** Collects an item that begins on a line. `more` are values that are stored with the item and not validated. */
export type Add = (value: unknown, line: number, more?: Pick<BatchItem, "additional" | "columns">) => Read

/** Reads an upload in one format. `record` reads the next record, which begins on a line; `end` checks that the upload is complete. */
export interface RecordReader {
  readonly record: (text: string, line: number) => Read
  readonly end: (line: number) => Read
}
/** Creates the reader of an upload. The reader passes each item to `add`. */
export type MakeReader = (add: Add) => RecordReader

const decodeItem = Schema.decodeUnknownResult(Item, { onExcessProperty: "error", errors: "all" })
export const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))

/** Creates a collector of items. `add` validates a value and collects it as an item. */
export const makeItems = () => {
  let read: Array<BatchItem> = []
  /** The line of the item with each custom id. Its size is the number of items. */
  const lines = new Map<string, number>()
  const add: Add = (value, line, more) => {
    const number = lines.size + 1
    const item = decodeItem(value)
    if (Result.isFailure(item)) return invalid(line, `Item ${number}: ${item.failure.message.replaceAll(/\s+/gu, " ")}`)
    const { custom_id: customId, reference = "", requester_vat_id = "", vat_id: input, ...sent } = item.success
    const details = documentOf(requester_vat_id || null, companyOf(sent), reference || null)
    const earlier = lines.get(customId)
    if (earlier !== undefined) return invalid(line, `Item ${number}: the item on line ${earlier} has the same custom_id`)
    if (number > batchItems.max) return invalid(line, `The upload has more than ${batchItems.max} items, the maximum of a batch`)
    lines.set(customId, line)
    read.push({ customId, input, ...(details === undefined ? {} : { details }), ...more })
    return done
  }
  return {
    add,
    /** Returns and removes the collected items. */
    take: (): ReadonlyArray<BatchItem> => {
      const taken = read
      read = []
      return taken
    },
    isEmpty: () => lines.size === 0
  }
}

export const ndjsonReader: MakeReader = (add) => ({
  record: (text, line) =>
    text.trim() === ""
      ? done
      : Option.match(decodeJson(text), { onNone: () => invalid(line, "Invalid JSON"), onSome: (value) => add(value, line) }),
  end: () => done
})

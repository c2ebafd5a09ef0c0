/** Reads the items of a batch from NDJSON, CSV or JSON while the upload arrives, so that memory does not grow with the upload. */
import { Effect, Option, Result, Schema, Stream } from "effect"
import type { BatchItem } from "#domain/pending/Batch.ts"
import { csvReader } from "#http/validation/BatchCsv.ts"
import { jsonItemTooLong, lineTooLong, makeItems, maxJsonItem, maxLine, ndjsonReader } from "#http/validation/BatchItems.ts"
import { jsonReader } from "#http/validation/BatchJson.ts"

/**
 * Limits of an upload. `lines` counts empty lines too. It is larger than the maximum number of items, because one item can have several
 * lines in JSON.
 */
const bounds = { bytes: 20 * 1024 * 1024, lines: 500_000 }

/** The upload is invalid and rejected as a whole. `line` is the number of the invalid line, from 1; null if no single line is invalid. */
export class InvalidUpload extends Schema.TaggedError<InvalidUpload>()("InvalidUpload", {
  line: Schema.NullOr(Schema.Int),
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

/** The upload exceeds the maximum number of bytes. */
export class UploadTooLarge extends Schema.TaggedError<UploadTooLarge>()("UploadTooLarge", {}) {}

const readers = { json: jsonReader, ndjson: ndjsonReader, csv: csvReader }
export type UploadFormat = keyof typeof readers

/**
 * Creates a function that decodes the bytes of a line. The function returns None if the bytes are not UTF-8, or if the text contains
 * U+0000.
 */
const makeDecoder = () => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  return (bytes: Uint8Array): Option.Option<string> =>
    Option.filter(Result.getSuccess(Result.try(() => decoder.decode(bytes))), (text) => !text.includes("\0"))
}

const newLine = 10
const closingBrace = 125

type ReadItems<E> = Result.Result<ReadonlyArray<BatchItem>, E>

/** Creates the reader of an upload. `push` reads the next part and returns its complete items; `end` returns the last items. */
const makeUpload = (format: UploadFormat) => {
  const items = makeItems()
  const reader = readers[format](items.add)
  const decode = makeDecoder()
  let line = 1
  let size = 0
  let pending: Uint8Array = new Uint8Array()

  const fail = (problem: string) => Result.fail(new InvalidUpload({ line, problem }))

  const readLine = (bytes: Uint8Array): Result.Result<void, InvalidUpload> => {
    if (format !== "json" && bytes.length > maxLine) return fail(lineTooLong)
    if (line > bounds.lines) return fail(`The upload has more than ${bounds.lines} lines, the maximum of a batch`)
    const text = decode(bytes)
    if (Option.isNone(text)) return fail("The line is not UTF-8 text, or it contains U+0000")
    const read = reader.line(format === "json" ? text.value : text.value.replace(/\r?\n?$/u, ""))
    return Result.isFailure(read) ? fail(read.failure) : Result.succeed(undefined)
  }

  /**
   * Returns the index of the last byte that can be read now: the index of the next line break or, in JSON without a line break, of the
   * last closing brace. An index before `from` means that more bytes must arrive first.
   */
  const endOf = (bytes: Uint8Array, from: number) => {
    const end = bytes.indexOf(newLine, from)
    return end === -1 && format === "json" ? bytes.lastIndexOf(closingBrace) : end
  }

  return {
    push: (part: Uint8Array): ReadItems<InvalidUpload | UploadTooLarge> => {
      size += part.length
      if (size > bounds.bytes) return Result.fail(new UploadTooLarge({}))
      const bytes = new Uint8Array(pending.length + part.length)
      bytes.set(pending)
      bytes.set(part, pending.length)
      let from = 0
      for (let end = endOf(bytes, from); end >= from; end = endOf(bytes, from)) {
        const read = readLine(bytes.subarray(from, end + 1))
        if (Result.isFailure(read)) return Result.fail(read.failure)
        if (bytes[end] === newLine) line += 1
        from = end + 1
      }
      pending = bytes.slice(from)
      const [maxPending, tooLong] = format === "json" ? [maxJsonItem, jsonItemTooLong] : [maxLine, lineTooLong]
      return pending.length > maxPending ? fail(tooLong) : Result.succeed(items.take())
    },
    end: (): ReadItems<InvalidUpload> => {
      const last = pending.length === 0 ? Result.succeed(undefined) : readLine(pending)
      if (Result.isFailure(last)) return Result.fail(last.failure)
      const ended = reader.end()
      if (Result.isFailure(ended)) return fail(ended.failure)
      return items.isEmpty()
        ? Result.fail(new InvalidUpload({ line: null, problem: "A batch must have at least one item" }))
        : Result.succeed(items.take())
    }
  }
}

/**
 * Streams the items of a request body. Fails with InvalidUpload or UploadTooLarge. If the upload is interrupted, fails with the error
 * of the stream `body`.
 */
export const itemsOf = <E, R>(format: UploadFormat, body: Stream.Stream<Uint8Array, E, R>) =>
  Stream.suspend(() => {
    const upload = makeUpload(format)
    const parts = Stream.mapEffect(body, (part) => Effect.fromResult(upload.push(part)))
    return Stream.concat(parts, Stream.fromEffect(Effect.suspend(() => Effect.fromResult(upload.end()))))
  })

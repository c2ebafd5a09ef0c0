/** Reads the items of a batch while they arrive, as NDJSON, CSV or JSON: the memory that it needs does not grow with the upload. */
import { Effect, Option, Result, Schema, Stream } from "effect"
import type { BatchItem } from "#domain/pending/Batch.ts"
import { csvReader } from "#http/validation/BatchCsv.ts"
import { makeItems, maxLine, ndjsonReader } from "#http/validation/BatchItems.ts"
import { jsonReader } from "#http/validation/BatchJson.ts"

/** A line takes time even if it is empty. JSON has several lines for an item. */
const bounds = { bytes: 20 * 1024 * 1024, lines: 500_000 }

/** Why nothing of the upload is accepted; `line` counts from 1, null if it concerns the whole. */
export class InvalidUpload extends Schema.TaggedError<InvalidUpload>()("InvalidUpload", {
  line: Schema.NullOr(Schema.Int),
  problem: Schema.String
}) {
  override get message() {
    return this.problem
  }
}

/** More bytes than an upload may have. */
export class UploadTooLarge extends Schema.TaggedError<UploadTooLarge>()("UploadTooLarge", {}) {}

const readers = { json: jsonReader, ndjson: ndjsonReader, csv: csvReader }
export type UploadForm = keyof typeof readers

/** Texts of the bytes, line by line. */
const makeDecoder = () => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  return (bytes: Uint8Array): Option.Option<string> =>
    Option.filter(Result.getSuccess(Result.try(() => decoder.decode(bytes))), (text) => !text.includes("\0"))
}

const newLine = 10
const closingBrace = 125

type Taken<E> = Result.Result<ReadonlyArray<BatchItem>, E>

/** Reads an upload by its parts and returns the items of each; the failure has the line. */
const makeUpload = (form: UploadForm) => {
  const items = makeItems()
  const reader = readers[form](items.add)
  const decode = makeDecoder()
  let line = 1
  let size = 0
  let pending: Uint8Array = new Uint8Array()

  const fail = (problem: string) => Result.fail(new InvalidUpload({ line, problem }))

  const readLine = (bytes: Uint8Array): Result.Result<void, InvalidUpload> => {
    if (form !== "json" && bytes.length > maxLine) return fail(tooLong)
    if (line > bounds.lines) return fail(`A batch has at most ${bounds.lines} lines`)
    const text = decode(bytes)
    if (Option.isNone(text)) return fail("The text is not UTF-8")
    const read = reader.line(form === "json" ? text.value : text.value.replace(/\r?\n?$/u, ""))
    return Result.isFailure(read) ? fail(read.failure) : Result.succeed(undefined)
  }

  /** JSON may have no line breaks: what was read of it so far ends behind an object. */
  const endOf = (bytes: Uint8Array, from: number) => {
    const end = bytes.indexOf(newLine, from)
    return end === -1 && form === "json" ? bytes.lastIndexOf(closingBrace) : end
  }

  return {
    push: (part: Uint8Array): Taken<InvalidUpload | UploadTooLarge> => {
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
      return pending.length > 2 * maxLine ? fail(tooLong) : Result.succeed(items.take())
    },
    end: (): Taken<InvalidUpload> => {
      const last = pending.length === 0 ? Result.succeed(undefined) : readLine(pending)
      if (Result.isFailure(last)) return Result.fail(last.failure)
      const ended = reader.end()
      if (Result.isFailure(ended)) return fail(ended.failure)
      return items.isEmpty()
        ? Result.fail(new InvalidUpload({ line: null, problem: "A batch has at least one item" }))
        : Result.succeed(items.take())
    }
  }
}

const tooLong = `A line has at most ${maxLine} bytes`

/** The items of a body in parts. A body that is cut off fails as its stream does. */
export const itemsOf = <E, R>(form: UploadForm, body: Stream.Stream<Uint8Array, E, R>) =>
  Stream.suspend(() => {
    const upload = makeUpload(form)
    const parts = Stream.mapEffect(body, (part) => Effect.fromResult(upload.push(part)))
    return Stream.concat(parts, Stream.fromEffect(Effect.suspend(() => Effect.fromResult(upload.end()))))
  })

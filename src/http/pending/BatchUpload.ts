/** Reads the items of a batch from NDJSON, CSV or JSON while the upload arrives, so that memory does not grow with the upload. */
import { Effect, Option, Result, Schema, Semaphore, Stream } from "effect"
import type { BatchItem } from "#domain/pending/Batch.ts"
import { csvReader } from "#http/pending/BatchCsv.ts"
import { type InvalidUpload, invalid, makeItems, maxItem, ndjsonReader, type Read } from "#http/pending/BatchItems.ts"
import { jsonReader } from "#http/pending/BatchJson.ts"

/**
 * Limits of an upload. `lines` counts empty lines too. It is larger than the maximum number of items, because one item can have several
 * lines.
 */
const bounds = { bytes: 20 * 1024 * 1024, lines: 500_000 }
/**
 * Maximum number of bytes that are read without a pause. All uploads of a process take turns, so that their number does not delay other
 * requests.
 */
const maxSlice = 8 * 1024

/** The upload exceeds the maximum number of bytes. */
export class UploadTooLarge extends Schema.TaggedError<UploadTooLarge>()("UploadTooLarge", {}) {}

const [newLine, quotationMark, backslash, closingBrace] = [10, 34, 92, 125]

/** The reader of each format, the byte that ends a record, and whether this byte is ordinary text between quotation marks. */
const formats = {
  json: { makeReader: jsonReader, last: closingBrace, escape: backslash, hasQuotes: true },
  ndjson: { makeReader: ndjsonReader, last: newLine, escape: null, hasQuotes: false },
  csv: { makeReader: csvReader, last: newLine, escape: null, hasQuotes: true }
}
export type UploadFormat = keyof typeof formats

/** Decodes the bytes of a record. Returns None if they are not UTF-8, or if the text contains U+0000. */
const makeDecoder = () => {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  return (bytes: Uint8Array): Option.Option<string> =>
    Option.filter(Result.getSuccess(Result.try(() => decoder.decode(bytes))), (text) => !text.includes("\0"))
}

/**
 * Creates a function that returns the number of bytes from `from` up to the end of the record, this end included; 0 if the part does not
 * contain it. The function reads each byte once and keeps its state from part to part.
 */
const makeEndOf = ({ escape, hasQuotes, last }: (typeof formats)[UploadFormat]) => {
  let isQuoted = false
  let isEscaped = false
  return (part: Uint8Array, from: number) => {
    for (let at = from; at < part.length; at += 1) {
      const byte = part[at]
      if (isEscaped) isEscaped = false
      else if (isQuoted && byte === escape) isEscaped = true
      else if (hasQuotes && byte === quotationMark) isQuoted = !isQuoted
      else if (byte === last && !isQuoted) return at + 1 - from
    }
    return 0
  }
}

type ReadItems<E> = Result.Result<ReadonlyArray<BatchItem>, E>

/** Creates the reader of an upload. `push` reads the next part and returns its complete items; `end` returns the last items. */
const makeUpload = (format: UploadFormat) => {
  const items = makeItems()
  const reader = formats[format].makeReader(items.add)
  const endOf = makeEndOf(formats[format])
  const decode = makeDecoder()
  /** The bytes of the record that has not ended yet, and the line on which it begins. */
  const held = new Uint8Array(maxItem)
  let length = 0
  let line = 1
  let size = 0

  const hold = (bytes: Uint8Array): Read => {
    if (length + bytes.length > maxItem) return invalid(line, `The item has more than the maximum of ${maxItem} bytes`)
    held.set(bytes, length)
    length += bytes.length
    return Result.succeed(undefined)
  }

  const readRecord = (): Read => {
    const text = decode(held.subarray(0, length))
    length = 0
    if (line > bounds.lines) return invalid(line, `The upload has more than ${bounds.lines} lines, the maximum of a batch`)
    if (Option.isNone(text)) return invalid(line, "The line is not UTF-8 text, or it contains U+0000")
    const read = reader.record(text.value, line)
    line += text.value.split("\n").length - 1
    return read
  }

  return {
    push: (part: Uint8Array): ReadItems<InvalidUpload | UploadTooLarge> => {
      size += part.length
      if (size > bounds.bytes) return Result.fail(new UploadTooLarge({}))
      let from = 0
      for (let bytes = endOf(part, from); bytes > 0; bytes = endOf(part, from)) {
        const read = Result.flatMap(hold(part.subarray(from, from + bytes)), readRecord)
        if (Result.isFailure(read)) return Result.fail(read.failure)
        from += bytes
      }
      return Result.map(hold(part.subarray(from)), items.take)
    },
    end: (): ReadItems<InvalidUpload> => {
      // The text after the last record of JSON is white space.
      const isRead =
        length === 0 || (format === "json" && decode(held.subarray(0, length)).pipe(Option.exists((text) => text.trim() === "")))
      const last = isRead ? Result.succeed(undefined) : readRecord()
      const ended = Result.flatMap(last, () => reader.end(line))
      if (Result.isFailure(ended)) return Result.fail(ended.failure)
      return items.isEmpty() ? invalid(null, "A batch must have at least one item") : Result.succeed(items.take())
    }
  }
}

const slicesOf = (part: Uint8Array) =>
  Array.from({ length: Math.ceil(part.length / maxSlice) }, (_, index) => part.subarray(index * maxSlice, (index + 1) * maxSlice))

/**
 * Creates a function that streams the items of a request body. The stream fails with InvalidUpload or UploadTooLarge. If the upload is
 * interrupted, it fails with the error of the stream `body`.
 */
export const makeItemsOf = Effect.map(Semaphore.make(1), (turn) => {
  const inTurn = <A, E>(read: () => Result.Result<A, E>) =>
    turn.withPermit(
      Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() => Effect.fromResult(read()))
      )
    )
  return <E, R>(format: UploadFormat, body: Stream.Stream<Uint8Array, E, R>) =>
    Stream.suspend(() => {
      const upload = makeUpload(format)
      const parts = Stream.mapEffect(
        Stream.flatMap(body, (part) => Stream.fromIterable(slicesOf(part))),
        (slice) => inTurn(() => upload.push(slice))
      )
      return Stream.concat(parts, Stream.fromEffect(inTurn(upload.end)))
    })
})

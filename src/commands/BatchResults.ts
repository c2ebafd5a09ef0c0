/** Saves the results of a batch to a file, either completely or not at all. */
import { Effect, FileSystem, Path, Schema, Stream } from "effect"
import { HttpClientRequest, type HttpClientResponse } from "effect/http"

/** Maximum time without new data while the results are transferred. */
const timeout = "60 seconds"

/** The last row of the results, which marks their end, and the maximum number of its bytes. */
const lastRow = /(?:^|\r\n)(#end,[^\r\n]*\r\n)$/u
const lastRowBytes = 4_096

/** The transfer of the results ended, or received no more data, before the row that marks their end. */
export class ResultsCutOff extends Schema.TaggedError<ResultsCutOff>()("ResultsCutOff", { batchId: Schema.String }) {
  override get message() {
    return `The results were cut off; run the command again with --resume ${this.batchId}`
  }
}

type Transfer = Pick<HttpClientResponse.HttpClientResponse, "stream">

/** Writes the results into a temporary file. After the last row, removes this row and renames the file. */
export const save = Effect.fnUntraced(function* <E, R>(
  execute: (request: HttpClientRequest.HttpClientRequest) => Effect.Effect<Transfer, E, R>,
  batchId: string,
  out: string
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const temporary = yield* fs.makeTempFileScoped({ directory: path.dirname(path.resolve(out)), prefix: ".results-" })
  const request = HttpClientRequest.get(`/v1/batches/${encodeURIComponent(batchId)}/results`)
  const response = yield* execute(HttpClientRequest.setHeader(request, "accept", "text/csv"))
  let size = 0
  let last: Uint8Array = new Uint8Array()
  const bytes = response.stream.pipe(
    Stream.timeout(timeout),
    Stream.tap((part) =>
      Effect.sync(() => {
        size += part.length
        last = Buffer.concat([last, part.subarray(-lastRowBytes)]).subarray(-lastRowBytes)
      })
    )
  )
  const cutOff = new ResultsCutOff({ batchId })
  yield* Stream.run(bytes, fs.sink(temporary)).pipe(Effect.catchTag("HttpClientError", () => Effect.fail(cutOff)))
  const end = lastRow.exec(new TextDecoder().decode(last))?.[1]
  if (end === undefined) return yield* cutOff
  yield* fs.truncate(temporary, size - end.length)
  yield* fs.rename(temporary, out)
}, Effect.scoped)

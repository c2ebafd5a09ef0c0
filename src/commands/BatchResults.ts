/** Saves the results of a batch to a file, either completely or not at all. */
import { Effect, FileSystem, Path, Schema, Stream } from "effect"
import { HttpClientRequest, type HttpClientResponse } from "effect/http"

/** Maximum time without new data while the results are transferred. */
const timeout = "60 seconds"

/**
 * First characters of the last row of the results, which marks their end. All other rows start with a quotation mark or are the header.
 */
const marker = "#end,"

/** The transfer of the results ended, or received no more data, before the row that marks their end. */
export class ResultsCutOff extends Schema.TaggedError<ResultsCutOff>()("ResultsCutOff", { batchId: Schema.String }) {
  override get message() {
    return `The results were cut off; run the command again with --resume ${this.batchId}`
  }
}

type Transfer = Pick<HttpClientResponse.HttpClientResponse, "stream">

/** Writes the results into a temporary file, and renames it after the last row. */
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
  let end = ""
  const lines = response.stream.pipe(
    Stream.timeout(timeout),
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filter((line) => {
      if (line.startsWith(marker)) end = line
      return end === ""
    }),
    Stream.map((line) => `${line}\r\n`),
    Stream.encodeText
  )
  const cutOff = new ResultsCutOff({ batchId })
  yield* Stream.run(lines, fs.sink(temporary)).pipe(Effect.catchTag("HttpClientError", () => Effect.fail(cutOff)))
  if (end === "") return yield* cutOff
  yield* fs.rename(temporary, out)
}, Effect.scoped)

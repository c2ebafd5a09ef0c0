/** `vatproof batch`: validates the VAT IDs of a CSV file through the API of a running service. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, FileSystem, Layer, Option, Path, Predicate, Redacted, Schedule, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as BatchResults from "#app/commands/BatchResults.ts"
import { json, print, remark } from "#app/commands/Operation.ts"
import * as Progress from "#app/commands/Progress.ts"
import { AppConfig, publicUrlOf } from "#infra/config/AppConfig.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/** Maximum time until the first response of the service, so that a wrong URL fails soon. */
const reachTimeout = "10 seconds"
/** Maximum time until a response begins. */
const timeout = "60 seconds"
/** A long poll is as short as the interval at which progress is shown. */
const longPollSeconds = "1"
/** Retries of transient failures: 7 attempts per request in about a minute. */
const retry = { schedule: Schedule.exponential("1 second"), times: 6 } as const

/** The service rejected the batch, or the command ended without all results. */
class BatchFailed extends Schema.TaggedError<BatchFailed>()("BatchFailed", { message: Schema.String }) {}

const Batch = Schema.Struct({
  batch_id: Schema.String,
  status: Schema.String,
  resets_at: Schema.NullOr(Schema.String),
  counts: Schema.Struct({
    total: Schema.Int,
    pending: Schema.Int,
    final: Schema.Int,
    invalid_format: Schema.Int,
    duplicates: Schema.Int,
    expired: Schema.Int,
    cancelled: Schema.Int
  })
})
type Batch = typeof Batch.Type
const decodeBatch = HttpClientResponse.schemaBodyJson(Batch)

const Problem = Schema.Struct({ error: Schema.Struct({ message: Schema.String }) })
const decodeProblem = HttpClientResponse.schemaBodyJson(Problem)

/** Fails with the message in the error body of the response. If the response has no error body, the failure names its HTTP status. */
const refusal = (response: HttpClientResponse.HttpClientResponse) =>
  decodeProblem(response).pipe(
    Effect.map(({ error: { message } }) => message),
    Effect.orElseSucceed(() => `The service responded with status ${response.status}`),
    Effect.flatMap((message) => Effect.fail(new BatchFailed({ message })))
  )

/** Returns the code or message of the innermost error, for example ECONNREFUSED. Outer errors say only that the transport failed. */
const reasonOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "cause") && error.cause !== undefined) return reasonOf(error.cause)
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.isError(error) ? error.message : String(error)
}

/**
 * Creates an HTTP client that retries requests after transient failures, once the service has responded. A retry is safe, because all requests are idempotent: the
 * upload has an Idempotency-Key, and the other requests only read.
 */
const makeClient = Effect.fnUntraced(function* (url: string, apiKey: Redacted.Redacted) {
  const http = yield* HttpClient.HttpClient
  const prepare = (request: HttpClientRequest.HttpClientRequest) =>
    request.pipe(HttpClientRequest.prependUrl(url), HttpClientRequest.setHeader("x-api-key", Redacted.value(apiKey)))
  let reason = "no response"
  let hasRemarked = false
  const remarkRetry = (error: unknown) => {
    reason = reasonOf(error)
    if (hasRemarked) return Effect.void
    hasRemarked = true
    return remark(`Cannot reach ${url} (${reason}); retrying`)
  }
  const client = http.pipe(
    HttpClient.mapRequest(prepare),
    HttpClient.transformResponse(Effect.timeout(timeout)),
    HttpClient.tapError(remarkRetry)
  )
  yield* remark(`Connecting to ${url}`)
  yield* Effect.retry(client.get("/health"), Schedule.spaced("1 second")).pipe(
    Effect.timeoutOrElse({
      duration: reachTimeout,
      orElse: () => Effect.fail(new BatchFailed({ message: `Cannot reach ${url} within 10 seconds: ${reason}` }))
    })
  )
  const retrying = HttpClient.retryTransient(client, retry)
  return Effect.fnUntraced(
    function* (request: HttpClientRequest.HttpClientRequest) {
      const response = yield* retrying.execute(request)
      return response.status < 400 ? response : yield* refusal(response)
    },
    Effect.catchTag(["HttpClientError", "TimeoutError"], (error) =>
      Effect.fail(new BatchFailed({ message: `Cannot reach ${url}: ${reasonOf(error)}` }))
    )
  )
})

type Execute = Effect.Success<ReturnType<typeof makeClient>>

const upload = Effect.fnUntraced(function* (execute: Execute, file: string) {
  const { uuidV7 } = yield* Crypto
  yield* remark(`Uploading ${file}`)
  const request = HttpClientRequest.post("/v1/batches").pipe(
    HttpClientRequest.setHeader("idempotency-key", uuidV7()),
    HttpClientRequest.bodyFile(file, { contentType: "text/csv" })
  )
  return yield* Effect.flatMap(Effect.flatMap(request, execute), decodeBatch)
})

const getBatch = (execute: Execute, batchId: string, wait: string) =>
  execute(HttpClientRequest.get(`/v1/batches/${encodeURIComponent(batchId)}`, { urlParams: { wait } })).pipe(
    Effect.flatMap(decodeBatch)
  )

/**
 * Waits until no item is pending, or until the batch pauses because the monthly quota is used up. The command does not wait for the end
 * of the pause, which can take a month.
 */
const awaitEnd = Effect.fnUntraced(function* (execute: Execute, first: Batch) {
  const progress = yield* Progress.make("items answered")
  let batch = first
  if (first.counts.pending > 0) yield* remark(`Waiting for the answers of the sources to ${first.counts.pending} items`)
  while (batch.counts.pending > 0 && batch.status !== "paused") {
    batch = yield* getBatch(execute, batch.batch_id, longPollSeconds)
    yield* progress(batch.counts.total - batch.counts.pending, batch.counts.total)
  }
  return batch
})

/**
 * Fails if the file to upload does not exist, or if the results cannot be written to `out`. The check comes before the upload,
 * because the service charges for each uploaded item that it answers.
 */
const checkFiles = Effect.fnUntraced(function* (file: string | null, out: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const infoOf = (name: string) => Effect.map(Effect.option(fs.stat(name)), Option.getOrNull)
  if (file !== null && (yield* infoOf(file))?.type !== "File") {
    return yield* new BatchFailed({ message: `${file} does not exist or is not a file` })
  }
  if (file !== null && path.resolve(file) === path.resolve(out)) {
    return yield* new BatchFailed({ message: "--out names the file to upload; choose another file for the results" })
  }
  const folder = path.dirname(path.resolve(out))
  const canWrite = yield* Effect.isSuccess(fs.access(folder, { writable: true }))
  if (!canWrite || (yield* infoOf(out))?.type === "Directory") {
    return yield* new BatchFailed({
      message: `The results cannot be written to ${out}: the folder does not exist or is not writable, or ${out} is a folder`
    })
  }
})

const summaryOf = ({ counts, status }: Batch, out: string) => {
  const parts = [
    `${counts.final} answered`,
    `${counts.invalid_format} with invalid format`,
    `${counts.duplicates} duplicates`,
    ...(counts.expired > 0 ? [`${counts.expired} expired`] : []),
    ...(counts.cancelled > 0 ? [`${counts.cancelled} cancelled`] : []),
    ...(counts.pending > 0 ? [`${counts.pending} pending`] : [])
  ]
  return `The batch is ${status}. Of ${counts.total} items: ${parts.join(", ")}. The results are in ${out}`
}

export const batchCommand = Command.make(
  "batch",
  {
    file: Argument.String("file").pipe(
      Argument.optional,
      Argument.withDescription("A CSV file with the columns custom_id and vat_id, up to 50,000 rows")
    ),
    out: Flag.String("out").pipe(Flag.withDescription("The CSV file for the results, in the order of the rows")),
    url: Flag.String("url").pipe(
      Flag.optional,
      Flag.withDescription("URL of the service. Default: PUBLIC_URL, otherwise the address that the service listens on")
    ),
    resume: Flag.String("resume").pipe(
      Flag.optional,
      Flag.withDescription("The batch_id of an earlier batch, to wait for its results instead of uploading a file")
    ),
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const config = yield* AppConfig
      if (Option.isNone(config.apiKey))
        return yield* new BatchFailed({ message: "Set API_KEY or API_KEY_FILE: the command needs an API key" })
      if (Option.isSome(flags.file) === Option.isSome(flags.resume))
        return yield* new BatchFailed({ message: "Give a file or --resume, but not both" })
      yield* checkFiles(Option.getOrNull(flags.file), flags.out)
      const url = Option.getOrElse(flags.url, () => publicUrlOf(config)).replace(/\/+$/u, "")
      const execute = yield* makeClient(url, config.apiKey.value)
      const started = Option.isSome(flags.resume)
        ? yield* getBatch(execute, flags.resume.value, "0")
        : yield* upload(execute, Option.getOrThrow(flags.file))
      yield* remark(`The batch has the id ${started.batch_id}. To resume after an interruption: --resume ${started.batch_id}`)
      const batch = yield* awaitEnd(execute, started)
      yield* remark("Downloading the results")
      const saving = BatchResults.save(execute, batch.batch_id, flags.out)
      yield* Effect.retry(saving, { ...retry, while: ({ _tag }) => _tag === "ResultsCutOff" })
      yield* print(flags.json, { ...batch, out: flags.out }, summaryOf(batch, flags.out))
      if (batch.counts.pending > 0) {
        const message = `The monthly quota is used up until ${batch.resets_at ?? "the next month"}, when the batch continues`
        return yield* new BatchFailed({
          message: `${message}. To get all results, run the command later with --resume ${batch.batch_id}`
        })
      }
    },
    Effect.provide(Layer.merge(NodeHttpClient.layerUndici, NodeCrypto.layer))
  )
).pipe(
  Command.withDescription(
    "Validate the VAT IDs of a CSV file through a running service, wait for all answers, and write one row of results per item. The API key is read from " +
      "API_KEY or API_KEY_FILE"
  ),
  Command.withExamples([
    {
      command: "vatproof batch customers.csv --out results.csv --url https://vat.example.com",
      description: "A list of customers"
    },
    {
      command: "vatproof batch --resume 01a20419-04ae-76a0-8ca8-7e1e53bc6219 --out results.csv",
      description: "After an interruption"
    }
  ])
)

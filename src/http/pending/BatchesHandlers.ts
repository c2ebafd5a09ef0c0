import { DateTime, Duration, Effect, Option, Redacted, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { quoted, unchanged } from "#domain/text/CsvText.ts"
import { type BatchFacts, batchItems, type BatchRecord, type BatchResult } from "#domain/pending/Batch.ts"
import * as BatchEstimate from "#domain/pending/BatchEstimate.ts"
import { Batches, type ItemRefused } from "#domain/pending/Batches.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import { referenceIn } from "#domain/vat/Verdict.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import { DecodedApi } from "#http/Api.ts"
import { clientNetwork, TrustedProxies } from "#http/pipeline/ClientAddress.ts"
import { CurrentKey } from "#http/pipeline/Authentication.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import { counting } from "#http/pipeline/ResponseHints.ts"
import { basePath, Site } from "#http/pipeline/SiteSettings.ts"
import { type BatchResultBody, defaultBatches, defaultResults } from "#http/pending/BatchesApi.ts"
import type { InvalidUpload } from "#http/pending/BatchItems.ts"
import { makeItemsOf } from "#http/pending/BatchUpload.ts"
import { maxWaitSeconds } from "#http/pending/PendingValidationsApi.ts"
import * as Cursor from "#http/wire/Cursor.ts"
import * as IdempotencyKeyHeader from "#http/wire/IdempotencyKeyHeader.ts"
import { csv, json, ndjson } from "#http/wire/MediaTypes.ts"
import { mediaType } from "#http/wire/Negotiation.ts"
import * as Prefer from "#http/wire/Prefer.ts"

const formatOf = (contentType: string | undefined) => {
  const type = (contentType ?? json).split(";", 1)[0]?.trim().toLowerCase()
  return type === json ? "json" : type === ndjson ? "ndjson" : type === csv ? "csv" : null
}

const unsupported = Errors.toResponse({
  code: "UNSUPPORTED_MEDIA_TYPE",
  message: `Send the body as ${json}, ${ndjson} or ${csv}`
})
const tooLarge = Errors.toResponse({ code: "PAYLOAD_TOO_LARGE", message: "The batch exceeds 20 MiB; send it as several batches" })
const refused = ({ line, problem }: InvalidUpload) =>
  DecodeErrors.respond([{ field: line === null ? "body" : `line ${line}`, message: problem }])

const refusedItem = ({ item, refusal }: ItemRefused) =>
  Effect.flatMap(FailureResponses.problemOf(refusal), (problem) =>
    Errors.toResponse({ ...problem, message: `Item ${item}: ${problem.message}` })
  )

const negotiated = { vary: "Accept" }

/** Creates the handler that reads the items of the body and submits them as a batch. */
const makeSubmit = Effect.gen(function* () {
  const { submit } = yield* Batches
  const { countCall } = yield* ValidateVatId
  const itemsOf = yield* makeItemsOf
  const publicPath = basePath(yield* Site)
  const { count: proxies } = yield* TrustedProxies

  return Effect.fnUntraced(function* (prefer: string | undefined, keyHeader: string | undefined, maxAge: MaxAge) {
    const caller = yield* CurrentKey
    const request = yield* HttpServerRequest.HttpServerRequest
    const idempotencyKey = keyHeader === undefined ? Option.none() : IdempotencyKeyHeader.parse(keyHeader)
    if (keyHeader !== undefined && Option.isNone(idempotencyKey))
      return yield* DecodeErrors.respond(IdempotencyKeyHeader.problem())
    // The response to a batch is always asynchronous.
    const preferences = Prefer.parse(prefer, maxWaitSeconds)
    if (Option.isNone(preferences)) return yield* DecodeErrors.respond(Prefer.problem(maxWaitSeconds))
    const { wait } = preferences.value
    const format = formatOf(request.headers["content-type"])
    if (format === null) return yield* unsupported
    const key = Redacted.make(request.headers["x-api-key"] ?? "")
    yield* counting({ _tag: "Key", key }, countCall)
    const items = itemsOf(format, request.stream)
    const idempotency = Option.getOrNull(idempotencyKey)
    const client = clientNetwork(request, proxies)
    const { batch, isReplayed } = yield* submit({ caller, client, items, maxAge, idempotencyKey: idempotency, wait })
    const headers = {
      location: `${publicPath}/v1/batches/${batch.batchId}`,
      ...Prefer.applied(preferences.value),
      ...IdempotencyKeyHeader.replayed(isReplayed)
    }
    return HttpServerResponse.jsonUnsafe(yield* shown(caller, batch), { status: 202, headers })
  })
})

/** A text format of batch results: its first line, the line of a result, and its last line. `columns` are the additional columns. */
interface LineFormat {
  readonly first: (columns: ReadonlyArray<string>) => string
  readonly line: (result: BatchResult, columns: ReadonlyArray<string>) => string
  readonly last: (items: number, isComplete: boolean, columns: ReadonlyArray<string>) => string
}

/** Creates the functions that respond with results: with a page as JSON, or with all results as lines (NDJSON) or as a table (CSV). */
const makeResults = Effect.gen(function* () {
  const { results } = yield* Batches
  const cursors = yield* Cursor.make

  /**
   * Streams the results up to the first item that is not in the log yet. Reads each page from the database after the client has
   * received the previous page.
   */
  const allOf = ({ batchId, items }: BatchFacts) =>
    Stream.paginate(0, (first) =>
      Effect.map(results(batchId, first, batchItems.chunk), (page) => {
        const next = first + page.length
        const more = page.length > 0 && next < items ? Option.some(next) : Option.none()
        return [page, more] as const
      })
    )

  const page = Effect.fnUntraced(function* ({ batchId, items }: BatchFacts, cursor: string | undefined, limit: number) {
    const list = `results/${batchId}`
    const first = cursor === undefined ? 0 : yield* cursors.decode(list, cursor)
    const data = (yield* results(batchId, first, limit)).map(bodyOf)
    const next = first + data.length
    const next_cursor = next < items ? cursors.encode(list, next) : null
    return HttpServerResponse.jsonUnsafe({ data, next_cursor }, { headers: negotiated })
  })

  /**
   * Responds with all results in a text format. The last line says whether the results are complete: every item is in the response, and
   * no item is pending.
   */
  const respondWith = (contentType: string, batch: BatchFacts, format: LineFormat) =>
    Effect.sync(() => {
      let [count, pending] = [0, 0]
      let more: ReadonlyArray<string> = []
      const textOf = (result: BatchResult) => {
        if (count === 0) more = result.columns
        const first = count === 0 ? format.first(more) : ""
        count += 1
        if (result.status === "pending") pending += 1
        return first + format.line(result, more)
      }
      const last = Stream.sync(() => {
        const end = format.last(count, count === batch.items && pending === 0, more)
        return count === 0 ? format.first(more) + end : end
      })
      const lines = Stream.map(Stream.chunks(allOf(batch)), (page) => page.map(textOf).join(""))
      const body = Stream.concat(lines, last)
      return HttpServerResponse.stream(Stream.encodeText(body), { contentType, headers: negotiated })
    })

  const lines = (batch: BatchFacts) =>
    respondWith(ndjson, batch, {
      first: () => "",
      line: (result) => `${JSON.stringify(bodyOf(result))}\n`,
      last: (items, complete) => `${JSON.stringify({ end: true, complete, items })}\n`
    })

  const table = (batch: BatchFacts) =>
    respondWith(`${csv}; charset=utf-8; header=present`, batch, {
      first: (more) => `${[...columns, ...more.map(unchanged)].join(",")}\r\n`,
      line: rowOf,
      last: (_, complete, more) =>
        `#end,,${complete ? "complete" : "incomplete"}${",".repeat(columns.length + more.length - 3)}\r\n`
    })

  return { page, lines, table }
})

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "batches",
  Effect.fnUntraced(function* (handlers) {
    const { cancel, find, get, page } = yield* Batches
    const cursors = yield* Cursor.make
    const submit = yield* makeSubmit
    const results = yield* makeResults

    return handlers
      .handleRaw("submit", ({ query, request: { headers } }) =>
        submit(headers["prefer"], headers["idempotency-key"], query.max_age ?? null).pipe(
          Effect.catchTags({
            ItemRefused: refusedItem,
            InvalidUpload: refused,
            UploadTooLarge: () => tooLarge,
            HttpServerError: () => DecodeErrors.respond([{ field: "body", message: "The upload was interrupted; send it again" }])
          }),
          FailureResponses.respond
        )
      )
      .handle(
        "get",
        Effect.fnUntraced(function* ({ params, query }) {
          const caller = yield* CurrentKey
          const batch = yield* get(caller.keyId, params.batch_id, Duration.seconds(query.wait ?? 0))
          return HttpServerResponse.jsonUnsafe(yield* shown(caller, batch))
        }, FailureResponses.respond)
      )
      .handle(
        "list",
        Effect.fnUntraced(function* ({ query: { cursor, limit = defaultBatches } }) {
          const caller = yield* CurrentKey
          const list = `batches/${caller.keyId}`
          const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : yield* cursors.decode(list, cursor)
          const batches = yield* page(caller.keyId, before, limit + 1)
          const data = yield* Effect.forEach(batches.slice(0, limit), (batch) => shown(caller, batch))
          const last = batches.length > limit ? batches[limit - 1] : undefined
          const next_cursor = last === undefined ? null : cursors.encode(list, last.position)
          return HttpServerResponse.jsonUnsafe({ data, next_cursor })
        }, FailureResponses.respond)
      )
      .handle(
        "results",
        Effect.fnUntraced(function* ({ headers, params, query: { cursor, limit = defaultResults } }) {
          const { keyId } = yield* CurrentKey
          const batch = yield* find(keyId, params.batch_id)
          const format = Option.getOrElse(mediaType(headers.accept, [json, ndjson, csv]), () => json)
          if (format === json) return yield* results.page(batch, cursor, limit)
          return yield* format === csv ? results.table(batch) : results.lines(batch)
        }, FailureResponses.respond)
      )
      .handle(
        "cancel",
        Effect.fnUntraced(function* ({ params }) {
          const caller = yield* CurrentKey
          return HttpServerResponse.jsonUnsafe(yield* shown(caller, yield* cancel(caller.keyId, params.batch_id)))
        }, FailureResponses.respond)
      )
  })
)

/** Returns the JSON of a batch. */
const shown = (caller: KeyCaller, batch: BatchRecord) =>
  Effect.map(DateTime.now, (now) => {
    const { acceptedAt, batchId, counts, duplicates, expiresAt, isCancelled, isPaused, items, malformed } = batch
    const { cancelled, expired, final, pending } = counts
    const resets = DateTime.formatIso(caller.period.end)
    const remaining = BatchEstimate.remaining(counts, DateTime.distance(acceptedAt, now))
    const end = remaining === null ? null : DateTime.formatIso(DateTime.addDuration(now, remaining))
    return {
      batch_id: batchId,
      status: statusOf(pending > 0, isPaused, isCancelled),
      reason: isPaused ? "QUOTA" : null,
      resets_at: isPaused ? resets : null,
      counts: { total: items, pending, final, invalid_format: malformed, duplicates, expired, cancelled },
      accepted_at: DateTime.formatIso(acceptedAt),
      expires_at: DateTime.formatIso(expiresAt),
      estimated_end: isPaused ? resets : end
    }
  })

const statusOf = (isOpen: boolean, isPaused: boolean, isCancelled: boolean) => {
  if (isCancelled) return isOpen ? "cancelling" : "cancelled"
  return isPaused ? "paused" : isOpen ? "running" : "finished"
}

const bodyOf = ({ answer, consultationNumber, isCached, receiptId, status, ...result }: BatchResult): BatchResultBody => ({
  custom_id: result.customId,
  vat_id: result.vatId,
  ...referenceIn(result.reference),
  status,
  ...(answer === null
    ? {}
    : {
        valid: answer.valid,
        company_name: answer.company_name,
        company_address: answer.company_address,
        source: isCached ? ("cache" as const) : answer.source,
        source_timestamp: DateTime.formatIso(answer.answered_at),
        consultation_number: consultationNumber,
        ...(receiptId === null ? {} : { receipt_id: receiptId })
      }),
  ...(status === "pending" ? { last_failure: result.lastFailure } : {})
})

const columns = [
  "custom_id",
  "vat_id",
  "status",
  "valid",
  "company_name",
  "company_address",
  "source",
  "source_timestamp",
  "last_failure",
  "consultation_number",
  "reference",
  "receipt_id"
] as const

/** Returns the row of a result. The cells of additional columns are the caller's own, so they are returned as they were sent. */
const rowOf = (result: BatchResult, more: ReadonlyArray<string>): string => {
  const body = { ...bodyOf(result), last_failure: result.lastFailure?.code ?? null }
  const additional = more.map((_, index) => unchanged(result.additional[index] ?? ""))
  return `${[...columns.map((column) => cellOf(body[column] ?? "")), ...additional].join(",")}\r\n`
}

const cellOf = (value: string | boolean) => (typeof value === "string" && value !== "" ? quoted(value) : String(value))

import { DateTime, Effect, Option, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Auditor } from "#domain/audit/Auditor.ts"
import { type AuditPage, type AuditQuery, AuditTrail } from "#domain/audit/AuditTrail.ts"
import { NotInLog } from "#domain/log/NotInLog.ts"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"
import { parse } from "#domain/vat/VatId.ts"
import { DecodedApi } from "#http/Api.ts"
import { defaultLimit, knownFilters } from "#http/audit/AuditApi.ts"
import { CurrentAuditor, CurrentProofReader } from "#http/audit/AuditAuthentication.ts"
import * as Cursor from "#http/wire/Cursor.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { csv, json, ndjson, plain } from "#http/wire/MediaTypes.ts"
import { mediaType } from "#http/wire/Negotiation.ts"
import * as DecodeErrors from "#http/pipeline/DecodeErrors.ts"

/**
 * Matches the positions and receipt ids in requests for a proof. Other text gets a 404 without a look-up, and never becomes part of a
 * file name.
 */
const subjectForm = /^[\w-]{1,100}$/u

/** Number of events that a streamed response reads from the database at a time. */
const streamPage = 500

/**
 * Values of Cache-Control: `forever` for tiles, which never change; `briefly` for the checkpoint, which changes every second;
 * `never` for events and proofs.
 */
const forever = "public, max-age=31536000, immutable"
const briefly = "public, max-age=1"
const never = "private, no-store"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const trail = yield* AuditTrail
    const cursors = yield* makeDailyCursors

    /**
     * Streams the text of the page `first` and of all later pages. Reads each page from the database after the client has received the
     * previous page.
     */
    const streamFrom = (auditor: Auditor, query: AuditQuery, first: AuditPage, textOf: (page: AuditPage) => string) =>
      Stream.paginate(first, (page) =>
        Effect.map(
          page.next === null
            ? Effect.succeedNone
            : Effect.asSome(trail.page(auditor, query, { after: page.next, limit: streamPage })),
          (next) => [[textOf(page)], next] as const
        )
      )

    return handlers.handleAll({
      events: Effect.fnUntraced(function* ({ headers, query }) {
        const auditor = yield* CurrentAuditor
        const { cursor, limit = defaultLimit } = query
        const invalidFields = invalidFieldsOf(
          Object.keys(yield* HttpServerRequest.ParsedSearchParams),
          query,
          auditor,
          trail.types
        )
        if (invalidFields.length > 0) return yield* DecodeErrors.respond(invalidFields)
        const filter = yield* filterOf(query)
        const list = `audit/${auditor.auditorId}/${nameOf(filter)}`
        const after = cursor === undefined ? null : yield* cursors.decode(list, cursor)
        const form = Option.getOrElse(mediaType(headers.accept, [json, ndjson, csv]), () => json)
        if (form !== json) {
          const first = yield* trail.page(auditor, filter, { after, limit: streamPage })
          const textOf = form === csv ? tableOf : linesOf
          const body = streamFrom(auditor, filter, first, textOf)
          const whole = form === csv ? Stream.prepend(body, [trail.header]) : body
          const contentType = form === csv ? `${csv}; charset=utf-8; header=present` : form
          return HttpServerResponse.stream(Stream.encodeText(whole), { contentType, headers: negotiated })
        }
        const page = yield* trail.page(auditor, filter, { after, limit })
        const next = page.next === null ? null : yield* cursors.encode(list, page.next)
        return rawJson(`{"data":[${page.lines().join(",")}],"next_cursor":${JSON.stringify(next)}}`, negotiated)
      }, FailureResponses.respond),
      event: Effect.fnUntraced(function* ({ params }) {
        return rawJson(yield* trail.event(yield* CurrentAuditor, params.position))
      }, FailureResponses.respond),
      proof: Effect.fnUntraced(function* ({ headers, params: { subject } }) {
        if (!subjectForm.test(subject)) return yield* new NotInLog({ missing: "such event or receipt that you may read" })
        const proofSubject = /^\d{1,15}$/u.test(subject)
          ? { position: Number(subject) }
          : { receiptId: ReceiptId.normalize(subject) }
        const { line, position, proof, verifierKey } = yield* trail.prove(yield* CurrentProofReader, proofSubject)
        if (Option.contains(mediaType(headers.accept, [plain, json]), json)) {
          const rest = JSON.stringify({ proof, verifier_key: verifierKey }).slice(1)
          return rawJson(`{"position":${position},"event":${line},${rest}`)
        }
        return HttpServerResponse.text(proof, {
          contentType: `${plain}; charset=utf-8`,
          headers: { "cache-control": never, "content-disposition": `attachment; filename="${subject}.tlog-proof"` }
        })
      }, FailureResponses.respond),
      checkpoint: Effect.fnUntraced(function* () {
        return HttpServerResponse.text(yield* trail.checkpoint, {
          contentType: `${plain}; charset=utf-8`,
          headers: { "cache-control": briefly }
        })
      }, FailureResponses.respond),
      tile: Effect.fnUntraced(function* ({ params }) {
        return HttpServerResponse.uint8Array(yield* trail.tile(params["*"]), { headers: { "cache-control": forever } })
      }, FailureResponses.respond)
    })
  })
)

const linesOf = ({ lines }: AuditPage) =>
  lines()
    .map((line) => `${line}\n`)
    .join("")
const tableOf = ({ rows }: AuditPage) => rows().join("")

/** Headers of a response that depends on Accept. */
const negotiated = { "cache-control": never, vary: "Accept" }

/** Returns a response with JSON text. Events are stored as canonical JSON, so they are sent without parsing. */
const rawJson = (text: string, headers: Readonly<Record<string, string>> = { "cache-control": never }) =>
  HttpServerResponse.text(text, { contentType: json, headers })

interface EventsQuery {
  readonly from?: DateTime.Utc
  readonly to?: DateTime.Utc
  readonly type?: string
  readonly account_id?: string
  readonly key?: string
  readonly vat_id?: string
  readonly receipt_id?: string
}

/**
 * Returns the invalid fields of a query. Unknown filters are invalid, because an auditor would otherwise believe that the service had
 * applied them.
 */
const invalidFieldsOf = (
  names: ReadonlyArray<string>,
  { account_id, key, type }: EventsQuery,
  { accountId }: Auditor,
  types: ReadonlyArray<string>
) => [
  ...names
    .filter((name) => !knownFilters.includes(name))
    .map((field) => ({ field, message: `Unknown filter. Known filters: ${knownFilters.join(", ")}` })),
  ...(type === undefined || types.includes(type)
    ? []
    : [{ field: "type", message: `Unknown type. Known types: ${types.join(", ")}` }]),
  ...(key?.startsWith("svc_") === true && account_id === undefined && accountId === null
    ? [
        {
          field: "key",
          message: "The first 12 characters identify a key only within its account: add account_id, or use the key_id"
        }
      ]
    : [])
]

const filterOf = Effect.fnUntraced(function* (query: EventsQuery) {
  const { account_id = null, from = null, key = null, receipt_id, to = null, type = null, vat_id } = query
  const receiptId = receipt_id === undefined ? null : ReceiptId.normalize(receipt_id)
  const vatId = vat_id === undefined ? null : (yield* Effect.fromResult(parse(vat_id))).value
  return { from, to, type, accountId: account_id, key, vatId, receiptId } satisfies AuditQuery
})

/**
 * Returns a text that identifies the filter. A cursor contains a signature over this text, so it is valid only with the same filter.
 */
const nameOf = ({ accountId, from, key, receiptId, to, type, vatId }: AuditQuery) =>
  JSON.stringify([accountId, from?.epochMilliseconds, key, receiptId, to?.epochMilliseconds, type, vatId])

/**
 * Creates functions that encode and decode cursors. A cursor is valid on the UTC day of its creation and on the next day. Later the
 * auditor must start again at the first page, and each request for a first page is recorded in the log.
 */
const makeDailyCursors = Effect.map(Cursor.make, (cursors) => {
  const daysAgo = (days: number) => Effect.map(DateTime.now, (now) => DateTime.formatIsoDateUtc(DateTime.subtract(now, { days })))
  return {
    encode: (list: string, position: number) => Effect.map(daysAgo(0), (day) => cursors.encode(`${list}/${day}`, position)),
    decode: Effect.fnUntraced(function* (list: string, cursor: string) {
      const today = `${list}/${yield* daysAgo(0)}`
      const yesterday = `${list}/${yield* daysAgo(1)}`
      return yield* cursors.decode(today, cursor).pipe(Effect.catchTag("InvalidCursor", () => cursors.decode(yesterday, cursor)))
    })
  }
})

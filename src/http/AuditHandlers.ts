import { DateTime, Effect, Option, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import type { Auditor } from "#domain/Auditor.ts"
import { type AuditFilter, type AuditPage, AuditTrail, NotInLog } from "#domain/AuditTrail.ts"
import { parse } from "#domain/VatId.ts"
import { DecodedApi } from "#http/Api.ts"
import { defaultLimit, json, ndjson, plain } from "#http/AuditApi.ts"
import { CurrentAuditor, CurrentProofReader } from "#http/AuditAuthentication.ts"
import * as Cursor from "#http/Cursor.ts"
import * as Errors from "#http/Errors.ts"
import { mediaType } from "#http/Negotiation.ts"

/** Positions and receipts' ids: nothing else is looked for, and nothing else becomes a file's name. */
const subjectForm = /^[\w-]{1,100}$/u

/** Events that a stream reads at once. */
const streamPage = 500

/** Tiles never change, and a partial one is the beginning of the full one. A checkpoint is new every second. */
const forever = "public, max-age=31536000, immutable"
const briefly = "public, max-age=1"
const never = "private, no-store"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const trail = yield* AuditTrail
    const cursors = yield* makeDailyCursors

    /** Everything from a page on, one event a line; each page is read when the client has taken the one before. */
    const linesFrom = (auditor: Auditor, filter: AuditFilter, first: AuditPage) =>
      Stream.paginate(first, (page) =>
        Effect.map(
          page.next === null
            ? Effect.succeedNone
            : Effect.asSome(trail.page(auditor, filter, { after: page.next, limit: streamPage })),
          (next) => [page.lines.map((line) => `${line}\n`), next] as const
        )
      )

    return handlers.handleAll({
      events: Effect.fnUntraced(function* ({ headers, query }) {
        const auditor = yield* CurrentAuditor
        const { cursor, limit = defaultLimit } = query
        const filter = yield* filterOf(query)
        const list = `audit/${auditor.auditorId}/${nameOf(filter)}`
        const after = cursor === undefined ? null : yield* cursors.decode(list, cursor)
        if (Option.contains(mediaType(headers.accept, [json, ndjson]), ndjson)) {
          const first = yield* trail.page(auditor, filter, { after, limit: streamPage })
          return HttpServerResponse.stream(Stream.encodeText(linesFrom(auditor, filter, first)), {
            contentType: ndjson,
            headers: { "cache-control": never }
          })
        }
        const page = yield* trail.page(auditor, filter, { after, limit })
        const next = page.next === null ? null : yield* cursors.encode(list, page.next)
        return rawJson(`{"data":[${page.lines.join(",")}],"next_cursor":${JSON.stringify(next)}}`)
      }, Errors.respond),
      event: Effect.fnUntraced(function* ({ params }) {
        return rawJson(yield* trail.event(yield* CurrentAuditor, params.position))
      }, Errors.respond),
      proof: Effect.fnUntraced(function* ({ headers, params: { subject } }) {
        if (!subjectForm.test(subject)) return yield* new NotInLog({ what: "such event or receipt for you" })
        const asked = /^\d{1,15}$/u.test(subject) ? { position: Number(subject) } : { receiptId: subject }
        const { line, position, proof, verifierKey } = yield* trail.prove(yield* CurrentProofReader, asked)
        if (Option.contains(mediaType(headers.accept, [plain, json]), json)) {
          const rest = JSON.stringify({ proof, verifier_key: verifierKey }).slice(1)
          return rawJson(`{"position":${position},"event":${line},${rest}`)
        }
        return HttpServerResponse.text(proof, {
          contentType: `${plain}; charset=utf-8`,
          headers: { "cache-control": never, "content-disposition": `attachment; filename="${subject}.tlog-proof"` }
        })
      }, Errors.respond),
      checkpoint: Effect.fnUntraced(function* () {
        return HttpServerResponse.text(yield* trail.checkpoint, {
          contentType: `${plain}; charset=utf-8`,
          headers: { "cache-control": briefly }
        })
      }, Errors.respond),
      tile: Effect.fnUntraced(function* ({ params }) {
        return HttpServerResponse.uint8Array(yield* trail.tile(params["*"]), { headers: { "cache-control": forever } })
      }, Errors.respond)
    })
  })
)

/** Events are stored as canonical JSON: they are passed on as they are, not read and written again. */
const rawJson = (text: string) => HttpServerResponse.text(text, { contentType: json, headers: { "cache-control": never } })

interface AuditQuery {
  readonly from?: DateTime.Utc
  readonly to?: DateTime.Utc
  readonly type?: string
  readonly account_id?: string
  readonly vat_id?: string
  readonly receipt_id?: string
}

const filterOf = Effect.fnUntraced(function* (query: AuditQuery) {
  const { account_id = null, from = null, receipt_id = null, to = null, type = null, vat_id } = query
  const vatId = vat_id === undefined ? null : (yield* Effect.fromResult(parse(vat_id))).value
  return { from, to, type, accountId: account_id, vatId, receiptId: receipt_id } satisfies AuditFilter
})

const nameOf = ({ accountId, from, receiptId, to, type, vatId }: AuditFilter) =>
  JSON.stringify([accountId, from?.epochMilliseconds, receiptId, to?.epochMilliseconds, type, vatId])

/** A cursor is good on the day it was given and on the next: after that it is a new reading, which is recorded. */
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

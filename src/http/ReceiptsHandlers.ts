import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { receiptIdOf, receiptList } from "#domain/Receipt.ts"
import { AuditTrail } from "#domain/AuditTrail.ts"
import { type ReceiptErased, Receipts } from "#domain/Receipts.ts"
import { parse } from "#domain/VatId.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentReceiptReader } from "#http/Authentication.ts"
import * as Cursor from "#http/Cursor.ts"
import * as Errors from "#http/Errors.ts"
import * as ReceiptRepresentations from "#http/ReceiptRepresentations.ts"
import * as RequestErrors from "#http/RequestErrors.ts"
import { defaultLimit, listQuery } from "#http/ReceiptsApi.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "receipts",
  Effect.fnUntraced(function* (handlers) {
    const receipts = yield* Receipts
    const trail = yield* AuditTrail
    const cursors = yield* Cursor.make
    const represent = yield* ReceiptRepresentations.make

    /** An erased receipt is told with the proof that it was issued; a log that is not signed has none. */
    const erased = ({ keyId, message, position, receiptId }: ReceiptErased) =>
      trail.prove({ _tag: "Key", keyId }, { receiptId }).pipe(
        Effect.map(({ proof }) => proof),
        Effect.catchTag(["NotInLog", "NotSignedYet"], () => Effect.succeed(null)),
        Effect.flatMap((proof) => Errors.toResponse({ code: "RECEIPT_ERASED", message, details: { position, proof } }))
      )

    return handlers.handleAll({
      get: Effect.fnUntraced(function* ({ headers, params }) {
        const { ownerId } = yield* CurrentReceiptReader
        return yield* receipts.find(ownerId, receiptIdOf(params.receipt_id)).pipe(
          Effect.flatMap((record) => represent(ownerId, record, headers)),
          Effect.catchTag("ReceiptErased", erased)
        )
      }, Errors.respond),
      list: Effect.fnUntraced(function* ({ query }) {
        const { ownerId } = yield* CurrentReceiptReader
        const misspelled = RequestErrors.misspelled(yield* HttpServerRequest.ParsedSearchParams, Object.keys(listQuery))
        if (misspelled.length > 0) return yield* RequestErrors.respond(misspelled)
        const { cursor, limit = defaultLimit, target_vat_id } = query
        const targetVatId = target_vat_id === undefined ? null : (yield* Effect.fromResult(parse(target_vat_id))).value
        const list = receiptList(ownerId, targetVatId)
        const before = cursor === undefined ? null : yield* cursors.decode(list, cursor)
        const page = yield* receipts.page({ ownerId, targetVatId, before, limit })
        return { data: page.receipts, next_cursor: page.next === null ? null : cursors.encode(list, page.next) }
      }, Errors.respond)
    })
  })
)

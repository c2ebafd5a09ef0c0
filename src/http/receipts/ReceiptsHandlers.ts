import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { marked, receiptList } from "#domain/receipts/Receipt.ts"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"
import { ReceiptReader } from "#domain/receipts/ReceiptReader.ts"
import { parse } from "#domain/vat/VatId.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentReceiptReader } from "#http/pipeline/Authentication.ts"
import * as Cursor from "#http/wire/Cursor.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import * as Errors from "#http/pipeline/Errors.ts"
import { Site } from "#http/pipeline/SiteSettings.ts"
import * as ReceiptRepresentations from "#http/receipts/ReceiptRepresentations.ts"
import { defaultLimit } from "#http/receipts/ReceiptsApi.ts"

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "receipts",
  Effect.fnUntraced(function* (handlers) {
    const receipts = yield* ReceiptReader
    const { isSandbox } = yield* Site
    const cursors = yield* Cursor.make
    const { represent } = yield* ReceiptRepresentations.make
    const erased = yield* ReceiptRepresentations.makeErased

    return handlers.handleAll({
      get: Effect.fnUntraced(function* ({ headers, params }) {
        const { ownerId } = yield* CurrentReceiptReader
        return yield* receipts.find(ownerId, ReceiptId.normalize(params.receipt_id)).pipe(
          Effect.flatMap((record) => represent(ownerId, record, headers)),
          Effect.catchTag("ReceiptErased", (failure) => Effect.flatMap(erased(failure), Errors.toResponse))
        )
      }, FailureResponses.respond),
      list: Effect.fnUntraced(function* ({ query }) {
        const { ownerId } = yield* CurrentReceiptReader
        const { cursor, limit = defaultLimit, target_vat_id } = query
        const targetVatId = target_vat_id === undefined ? null : (yield* Effect.fromResult(parse(target_vat_id))).value
        const list = receiptList(ownerId, targetVatId)
        const before = cursor === undefined ? null : yield* cursors.decode(list, cursor)
        const page = yield* receipts.page({ ownerId, targetVatId, before, limit })
        const data = page.receipts.map((receipt) => marked(receipt, isSandbox))
        return { data, next_cursor: page.next === null ? null : cursors.encode(list, page.next) }
      }, FailureResponses.respond)
    })
  })
)

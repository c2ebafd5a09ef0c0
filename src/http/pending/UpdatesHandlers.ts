import { Duration, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type Update, UpdateType } from "#domain/pending/UpdateReader.ts"
import { Updates } from "#domain/pending/Updates.ts"
import { DecodedApi } from "#http/Api.ts"
import { CurrentKey } from "#http/pipeline/Authentication.ts"
import * as FailureResponses from "#http/pipeline/FailureResponses.ts"
import { Site } from "#http/pipeline/SiteSettings.ts"
import * as Cursor from "#http/wire/Cursor.ts"

const defaultLimit = 20

export const layer = HttpApiBuilder.group(
  DecodedApi,
  "updates",
  Effect.fnUntraced(function* (handlers) {
    const { head, read } = yield* Updates
    const { publicUrl } = yield* Site
    const cursors = yield* Cursor.make

    return handlers.handleAll({
      updates: Effect.fnUntraced(function* ({ query }) {
        const { keyId } = yield* CurrentKey
        const { after, limit = defaultLimit, types, wait = 0 } = query
        const list = `updates-${keyId}`
        const known = after === undefined ? Effect.succeed(0) : cursors.decode(list, after, "after")
        const from = yield* after === "now" ? head(keyId) : known
        const wanted = UpdateType.literals.filter((type) => types === undefined || types.split(",").includes(type))
        const { hasMore, updates } = yield* read({ keyId, from, types: wanted, limit }, Duration.seconds(wait))
        const last = updates.at(-1)
        const next = last === undefined ? from : last.position + 1
        return {
          data: updates.map((update) => shown(publicUrl, update)),
          next_cursor: cursors.encode(list, next),
          has_more: hasMore
        }
      }, FailureResponses.respond)
    })
  })
)

const shown = (publicUrl: string, update: Update) => {
  const { at: timestamp, id } = update
  if (update.type === "batch.completed") {
    const { batchId, counts, type } = update
    const { malformed: invalid_format, ...others } = counts
    const data = { batch_id: batchId, counts: { ...others, invalid_format }, url: `${publicUrl}/v1/batches/${batchId}` }
    return { id, timestamp, type, data }
  }
  const { validationId, vatId } = update
  const facts = { validation_id: validationId, vat_id: vatId, url: `${publicUrl}/v1/validations/${validationId}` }
  if (update.type !== "validation.final") return { id, timestamp, type: update.type, data: { ...facts, reason: update.reason } }
  const { answeredAt: source_timestamp, receiptId: receipt_id, source, type, valid } = update
  return { id, timestamp, type, data: { ...facts, valid, source, source_timestamp, receipt_id } }
}

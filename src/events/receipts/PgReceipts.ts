/**
 * Reads receipts from their events and personal documents, so that every replica can read a receipt as soon as it is issued. The
 * list of a key's receipts is in `vatproof.listed`, which the append keeps current.
 */
import { DateTime, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { ReceiptIssued, receiptStream, summaryOf, wholeReceipt } from "#domain/receipts/Receipt.ts"
import * as ReceiptId from "#domain/receipts/ReceiptId.ts"
import { ReceiptErased, ReceiptNotFound, type ReceiptPageRequest, ReceiptReader } from "#domain/receipts/ReceiptReader.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as SignedDocuments from "#events/log/notary/SignedDocuments.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"
const decodeIssued = EventTypes.decoder(ReceiptIssued)
const decodeDisclosed = EventTypes.documentDecoder(ReceiptIssued)

const make = Effect.gen(function* () {
  const hasKey = yield* makeHasKey
  const findPage = yield* makeFindPage
  const events = yield* EventStore
  const { verified } = yield* SignedLeaves.make
  const documentsOf = yield* SignedDocuments.make

  const issueOf = Effect.fnUntraced(function* (ownerId: string, receiptId: string) {
    if (!ReceiptId.isWellFormed(receiptId)) return yield* new ReceiptNotFound({ receiptId })
    const [event] = yield* events.readStream(receiptStream(receiptId), 0, 1)
    if (event === undefined || event.type !== ReceiptIssued.type) return yield* new ReceiptNotFound({ receiptId })
    yield* verified([event])
    const issued = yield* decodeIssued(event.data)
    const { key_id } = issued
    if (key_id !== ownerId && !(yield* hasKey(ownerId, key_id))) return yield* new ReceiptNotFound({ receiptId })
    return { event, issued }
  })

  const holderOf = Effect.fn("PgReceipts.holderOf")(function* (ownerId: string, receiptId: string) {
    const { issued } = yield* issueOf(ownerId, receiptId)
    return { accountId: issued.account_id, keyId: issued.key_id }
  })

  const find = Effect.fn("PgReceipts.find")(function* (ownerId: string, receiptId: string) {
    const { event, issued } = yield* issueOf(ownerId, receiptId)
    const { account_id, answer, attempts, key_id } = issued
    const document = (yield* documentsOf([event])).get(event.position) ?? null
    if (document === null) return yield* new ReceiptErased({ receiptId, keyId: key_id, position: event.position })
    const disclosed = yield* decodeDisclosed(document)
    const { http_status, request, response, response_sha256 } = disclosed.evidence
    return {
      receipt: wholeReceipt(issued, disclosed),
      position: event.position,
      recordedAt: event.recorded_at,
      evidence: { request, response, responseSha256: response_sha256, httpStatus: http_status },
      bzstStatus: answer.code ?? "",
      bzstAnsweredAt: DateTime.formatIso(answer.answered_at),
      validFrom: answer.valid_from,
      validUntil: answer.valid_until,
      calls: attempts.map(({ duration_ms, started_at }) => ({
        startedAt: DateTime.formatIso(started_at),
        durationMs: duration_ms
      })),
      eventId: event.event_id,
      accountId: account_id,
      keyId: key_id
    }
  })

  const page = Effect.fn("PgReceipts.page")(function* ({ before, limit, ownerId, targetVatId }: ReceiptPageRequest) {
    const ending = targetVatId === null ? "" : `/${targetVatId}`
    // Reads one row more than the limit, to find out whether another page follows.
    const rows = yield* findPage({ ownerId, ending, before: before ?? Number.MAX_SAFE_INTEGER, limit: limit + 1 }).pipe(
      QueryPolicy.withRetry(retryFor)
    )
    const shown = yield* verified(rows.slice(0, limit))
    const receipts = yield* Effect.forEach(shown, (row) =>
      Effect.map(decodeIssued(row.data), ({ receipt }) => summaryOf(receipt))
    )
    const last = shown.at(-1)
    return { receipts, next: rows.length > limit && last !== undefined ? last.position : null }
  })

  return ReceiptReader.of({ find, holderOf, page })
})

/** Creates a function that returns whether an account owns an API key now. The current owner may read all receipts of the key. */
const makeHasKey = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Schema.Struct({ account_id: Schema.String }),
    execute: (keyId) => sql`SELECT account_id FROM vatproof.api_keys WHERE key_id = ${keyId}::uuid`
  })
  return (accountId: string, keyId: string) =>
    find(keyId).pipe(QueryPolicy.withRetry(retryFor), Effect.map(Option.exists(({ account_id }) => account_id === accountId)))
})

// Finds a page of receipts. `ownerId` is the id of a key or of an account. LIMIT 1 keeps the planner from a join that reads the whole log.
const makeFindPage = Effect.map(SqlClient.SqlClient, (sql) =>
  SqlSchema.findAll({
    Request: Schema.Struct({ ownerId: Schema.String, ending: Schema.String, before: Schema.Int, limit: Schema.Int }),
    Result: StoredEvent,
    execute: ({ before, ending, limit, ownerId }) => sql`SELECT ${sql.literal(StoredEvent.columnsOf("e"))} FROM (
      SELECT found.position FROM (SELECT ${ownerId}::uuid AS key_id
        UNION ALL SELECT key_id FROM vatproof.api_keys WHERE account_id = ${ownerId}::uuid) AS k
      CROSS JOIN LATERAL (SELECT position FROM vatproof.listed
        WHERE log_id = ${logId} AND list = 'receipts-' || k.key_id::text || ${ending} AND position < ${BigInt(before)}
        ORDER BY position DESC LIMIT ${limit}) AS found
      ORDER BY found.position DESC LIMIT ${limit}) AS l
    CROSS JOIN LATERAL (SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events
      WHERE log_id = ${logId} AND position = l.position LIMIT 1) AS e
    ORDER BY l.position DESC`
  })
)

export const layer = Layer.effect(ReceiptReader, make)

/** Reads updates from vatproof.tasks and vatproof.batches, and their contents from the signed events. */
import { DateTime, Effect, Exit, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { BatchAccepted, BatchCompleted } from "#domain/pending/Batch.ts"
import { type Update, UpdateReader, type UpdatesRequest } from "#domain/pending/UpdateReader.ts"
import { ConfirmationRefused, ReceiptIssued } from "#domain/receipts/Receipt.ts"
import { ValidationCancelled } from "#domain/validation/ValidationTask.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import * as TaskEvents from "#events/pending/TaskEvents.ts"

const retryFor = "3 seconds"

/** A closed task, or a batch with the state `completed`. `accepted_by` is the position of BatchAccepted; null for a task. */
const Row = Schema.Struct({
  position: Schema.BigInt,
  id: Schema.String,
  state: Schema.Literals(["final", "expired", "cancelled", "completed"]),
  vat_id: Schema.NullOr(Schema.String),
  accepted_by: Schema.NullOr(Schema.BigInt)
})

const decodeVerified = EventTypes.decoder(VatIdVerified)
const decodeIssued = EventTypes.decoder(ReceiptIssued)
const decodeRefused = EventTypes.decoder(ConfirmationRefused)
const decodeCancelled = EventTypes.decoder(ValidationCancelled)
const decodeAccepted = EventTypes.decoder(BatchAccepted)
const decodeCompleted = EventTypes.decoder(BatchCompleted)

const makeQueries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  // Reads the tasks of each state by the index of that state, so that a page reads at most `limit` rows per type.
  const findPage = SqlSchema.findAll({
    Request: Schema.Struct({
      keyId: Schema.String,
      from: Schema.Int,
      states: Schema.Array(Schema.String),
      limit: Schema.Int
    }),
    Result: Row,
    execute: ({ from, keyId, limit, states }) => sql`SELECT u.position, u.id, u.state, u.vat_id, u.accepted_by
      FROM unnest(${sqlArray(states, elementType.text)}) AS s(state) CROSS JOIN LATERAL (
        (SELECT t.closed_by AS position, t.task_id AS id, t.state, t.vat_id, NULL::bigint AS accepted_by FROM vatproof.tasks t
          WHERE t.key_id = ${keyId}::uuid AND t.state = s.state COLLATE "C" AND t.batch_id IS NULL AND t.closed_by IS NOT NULL
            AND t.closed_by >= ${BigInt(from)} ORDER BY t.closed_by LIMIT ${limit})
        UNION ALL (SELECT b.completed_by, b.batch_id, s.state, NULL, b.position FROM vatproof.batches b
          WHERE s.state = 'completed' AND b.key_id = ${keyId}::uuid AND b.completed_by >= ${BigInt(from)} ORDER BY b.completed_by LIMIT ${limit})
      ) AS u ORDER BY u.position LIMIT ${limit}`
  })

  const findHeads = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Schema.Struct({ key_id: Schema.String, head: Schema.NullOr(Schema.BigInt) }),
    execute: (keyIds) => sql`SELECT k.key_id, greatest(
        (SELECT max(c.closed_by) FROM unnest(ARRAY['final', 'expired', 'cancelled']) AS s(state) CROSS JOIN LATERAL (
          SELECT t.closed_by FROM vatproof.tasks t WHERE t.key_id = k.key_id AND t.state = s.state COLLATE "C" AND t.batch_id IS NULL
            AND t.closed_by IS NOT NULL ORDER BY t.closed_by DESC LIMIT 1) AS c),
        (SELECT b.completed_by FROM vatproof.batches b WHERE b.key_id = k.key_id AND b.completed_by IS NOT NULL
          ORDER BY b.completed_by DESC LIMIT 1)) AS head
      FROM unnest(${sqlArray(keyIds, elementType.uuid)}) AS k(key_id)`
  })
  const head = yield* GroupCommit.make({
    run: Effect.fnUntraced(function* (keyIds: ReadonlyArray<string>) {
      const rows = yield* findHeads([...new Set(keyIds)]).pipe(QueryPolicy.withRetryForMany(retryFor))
      const heads = new Map(rows.map((row) => [row.key_id, row.head === null ? 0 : Number(row.head) + 1]))
      return keyIds.map((keyId) => Exit.succeed(heads.get(keyId) ?? 0))
    })
  })
  return { findPage, head }
})

/** Returns the source's answer in the event that answered a validation, and the id of its receipt. */
const answerIn = Effect.fnUntraced(function* ({ data, type }: StoredEvent) {
  if (type === VatIdVerified.type) return { ...(yield* decodeVerified(data)), receiptId: null }
  const { answer, receipt } = yield* decodeIssued(data)
  return { ...answer, receiptId: receipt.receipt_id }
})

const reasonIn = Effect.fnUntraced(function* ({ data, type }: StoredEvent) {
  if (type === ConfirmationRefused.type) return `refused: ${(yield* decodeRefused(data)).code}`
  return type === ValidationCancelled.type ? (yield* decodeCancelled(data)).reason : null
})

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* TaskEvents.make
  const queries = yield* makeQueries

  /** Returns the update of a row from its events. Refuses a row that contradicts them. */
  const updateOf = Effect.fnUntraced(function* (keyId: string, row: typeof Row.Type, event: StoredEvent, accepted: StoredEvent) {
    const { id, state, vat_id: vatId } = row
    const isOfKey = event.stream_id === `key-${keyId}` || event.data.includes(`"key_id":"${keyId}"`)
    const told = {
      id: `msg_${computedId(crypto, "update", event.event_id)}`,
      position: event.position,
      at: DateTime.toUtc(DateTime.makeUnsafe(event.occurred_at))
    }
    if (state === "completed") {
      if (!isOfKey || event.type !== BatchCompleted.type || accepted.event_id !== id) return yield* events.refuse(event.position)
      const { batch_id, cancelled, expired, final } = yield* decodeCompleted(event.data)
      const { duplicates, malformed } = yield* decodeAccepted(accepted.data)
      if (batch_id !== id) return yield* events.refuse(event.position)
      const counts = { cancelled, duplicates, expired, final, malformed }
      return { ...told, type: "batch.completed", batchId: id, counts } satisfies Update
    }
    if (vatId === null || !isOfKey || !TaskEvents.isClosedBy(event, { id, vatId, state }))
      return yield* events.refuse(event.position)
    const facts = { ...told, validationId: id, vatId }
    if (state !== "final")
      return { ...facts, type: `validation.${state}` as const, reason: yield* reasonIn(event) } satisfies Update
    const { answered_at: answeredAt, receiptId, source, valid } = yield* answerIn(event)
    return { ...facts, type: "validation.final", valid, source, answeredAt, receiptId } satisfies Update
  })

  const page = Effect.fn("PgUpdateReader.page")(function* ({ from, keyId, limit, types }: UpdatesRequest) {
    const states = types.map((type) => type.slice(type.indexOf(".") + 1))
    // Reads one row more than the limit, to find out whether another page follows.
    const rows = yield* queries.findPage({ keyId, from, states, limit: limit + 1 }).pipe(QueryPolicy.withRetry(retryFor))
    const shown = rows.slice(0, limit)
    const closings = yield* events.at(shown.map(({ position }) => position))
    const accepted = yield* events.at(shown.map(({ accepted_by, position }) => accepted_by ?? position))
    const updates = yield* Effect.forEach(shown, (row, index) => {
      const [event, first] = [closings[index], accepted[index]]
      return event === undefined || first === undefined ? events.refuse(row.position) : updateOf(keyId, row, event, first)
    })
    return { updates, hasMore: rows.length > limit }
  })

  return UpdateReader.of({ page, head: queries.head })
})

export const layer = Layer.effect(UpdateReader, make)

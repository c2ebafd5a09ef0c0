/** Appends BatchCompleted for the batches whose last item has ended. */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { BatchCompleted, type TaskCounts } from "#domain/pending/Batch.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { EventStore } from "#events/log/store/EventStore.ts"

const retryFor = "3 seconds"
/** Maximum number of batches that one look reads, and of batches that it completes at the same time. */
const perLook = { batches: 500, concurrency: 16 }

const Row = Schema.Struct({ batch_id: Schema.String, account_id: Schema.String, key_id: Schema.String, is_open: Schema.Boolean })

/** Creates `completeNext` of BatchStore. The id of the event is computed, so that concurrent replicas store it once. */
export const make = Effect.fnUntraced(function* (count: (batchId: string) => Effect.Effect<TaskCounts, StoreUnavailable>) {
  const crypto = yield* Crypto
  const events = yield* EventStore
  const sql = yield* SqlClient.SqlClient

  // The statement sees one snapshot, in which every chunk is either in the spool or in the log. LIMIT keeps the planner from reading all items.
  const find = SqlSchema.findAll({
    Request: Schema.String,
    Result: Row,
    execute: (after) => sql`SELECT b.batch_id, b.account_id, b.key_id,
        coalesce((SELECT t.item FROM vatproof.tasks t WHERE t.batch_id = b.batch_id AND t.closed_by IS NULL ORDER BY t.item LIMIT 1),
          (SELECT u.chunk FROM vatproof.uploads u WHERE u.batch_id = b.batch_id ORDER BY u.chunk LIMIT 1)) IS NOT NULL AS is_open
      FROM (SELECT batch_id, account_id, key_id FROM vatproof.batches WHERE completed_by IS NULL AND batch_id > ${after}::uuid
        ORDER BY batch_id LIMIT ${perLook.batches}) AS b`
  })

  const complete = Effect.fnUntraced(function* ({ account_id, batch_id, key_id }: typeof Row.Type) {
    const { cancelled, expired, final } = yield* count(batch_id)
    const event = BatchCompleted.make({ batch_id, account_id, key_id, final, expired, cancelled })
    yield* events.appendFact(`key-${key_id}`, event, { eventId: computedId(crypto, "completed", batch_id), causationId: null })
  })

  return Effect.fn("PgBatchStore.completeNext")(function* (after: string) {
    const rows = yield* find(after).pipe(QueryPolicy.withRetry(retryFor))
    const ended = rows.filter(({ is_open }) => !is_open)
    yield* Effect.forEach(ended, complete, { concurrency: perLook.concurrency, discard: true })
    const last = rows.length === perLook.batches ? (rows.at(-1)?.batch_id ?? null) : null
    return { keyIds: [...new Set(ended.map(({ key_id }) => key_id))], last }
  })
})

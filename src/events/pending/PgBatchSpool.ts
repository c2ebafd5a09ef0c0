/**
 * Stores the items of an upload, in chunks, as rows of vatproof.uploads until they are in the log. The transaction that appends the
 * items of a chunk also deletes the row of the chunk, so each chunk is appended once.
 */
import { Duration, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity } from "#domain/log/Integrity.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import {
  BatchAccepted,
  batchItems,
  BatchItemsAccepted,
  BatchItemsCancelled,
  BatchItemsDocument,
  BatchQuestions
} from "#domain/pending/Batch.ts"
import { type BatchChunk, BatchSpool, type NewBatch, type OpenedChunk } from "#domain/pending/BatchSpool.ts"
import { Crypto, type PureCrypto } from "#domain/kernel/Crypto.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import { digestOf } from "#events/pending/ChunkDigest.ts"
import { type AppendCommand, logId } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { EventStore } from "#events/log/store/EventStore.ts"

const retryFor = "3 seconds"
/** Maximum attempts to append a chunk while other replicas append the same chunks. */
const maxAttempts = 4

const decodeAccepted = EventTypes.decoder(BatchAccepted)
const encodeQuestions = Schema.encodeSync(Schema.fromJsonString(BatchQuestions))
const encodeDocument = Schema.encodeSync(Schema.fromJsonString(BatchItemsDocument))

const Spooled = Schema.Struct({
  batch_id: Schema.String,
  chunk: Schema.Int,
  opened: Schema.BigInt,
  position: Schema.NullOr(Schema.BigInt),
  is_cancelled: Schema.Boolean,
  items: Schema.fromJsonString(BatchQuestions),
  document: Schema.NullOr(Schema.fromJsonString(BatchItemsDocument))
})

type Spooled = typeof Spooled.Type

/**
 * A cancelled batch. `item` is the number of its first pending item, or null if no item is pending. `is_spooled` is true if a chunk
 * of the batch is not in the log yet.
 */
const Cancelled = Schema.Struct({
  batch_id: Schema.String,
  account_id: Schema.String,
  key_id: Schema.String,
  cancelled_by: Schema.BigInt,
  item: Schema.NullOr(Schema.Int),
  is_spooled: Schema.Boolean
})

/**
 * The chunk was not appended, because another replica has appended it, or because its document was erased after this replica read
 * it.
 */
class ChunkTaken extends Schema.TaggedError<ChunkTaken>()("ChunkTaken", {}) {}

const makeQueries = Effect.map(SqlClient.SqlClient, (sql) => ({
  keep: (uploadId: string, accountId: string, chunk: number, { document, questions }: BatchChunk) =>
    sql`INSERT INTO vatproof.uploads (upload_id, chunk, account_id, items, document)
      VALUES (${uploadId}, ${chunk}, ${accountId}, ${encodeQuestions(questions)}, ${encodeDocument(document)})
      ON CONFLICT DO NOTHING`,
  discard: (uploadId: string) => sql`DELETE FROM vatproof.uploads WHERE upload_id = ${uploadId}::uuid AND batch_id IS NULL`,
  claim: SqlSchema.findAll({
    Request: Schema.Struct({ uploadId: Schema.String, batchId: Schema.String }),
    Result: Schema.Struct({ chunk: Schema.Int }),
    execute: ({ batchId, uploadId }) =>
      sql`UPDATE vatproof.uploads SET batch_id = ${batchId}::uuid WHERE upload_id = ${uploadId}::uuid RETURNING chunk`
  }),
  // Reads the next spooled chunk: the first chunk of the first batch whose id is greater than `after`. If there is no such batch,
  // reads the first chunk of the batch with the smallest id.
  next: SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Spooled,
    execute: (
      after
    ) => sql`SELECT n.batch_id, n.chunk, n.items, n.document, b.position, b.cancelled_by IS NOT NULL AS is_cancelled,
        (SELECT count(*) FROM vatproof.listed l WHERE l.log_id = ${logId} AND l.list = 'batch-' || n.batch_id) AS opened FROM (
        (SELECT 0 AS turn, batch_id, chunk, items, document FROM vatproof.uploads WHERE batch_id > ${after}::uuid ORDER BY batch_id, chunk LIMIT 1)
        UNION ALL (SELECT 1, batch_id, chunk, items, document FROM vatproof.uploads WHERE batch_id IS NOT NULL ORDER BY batch_id, chunk LIMIT 1)
      ) AS n LEFT JOIN LATERAL (SELECT position, cancelled_by FROM vatproof.batches WHERE batch_id = n.batch_id LIMIT 1) AS b ON true
      ORDER BY n.turn LIMIT 1`
  }),
  // Deletes the row of a chunk. Deletes nothing if the document in the row was erased after this replica read it; the replica then
  // reads the row again.
  remove: SqlSchema.findAll({
    Request: Schema.Struct({ batchId: Schema.String, chunk: Schema.Int, isErased: Schema.Boolean }),
    Result: Schema.Struct({ chunk: Schema.Int }),
    execute: ({ batchId, chunk, isErased }) => sql`DELETE FROM vatproof.uploads
      WHERE batch_id = ${batchId}::uuid AND chunk = ${chunk} AND (document IS NULL) = ${isErased} RETURNING chunk`
  }),
  // Housekeeping deletes the chunks after 30 days. Until then they are evidence.
  setAside: (
    batchId: string,
    chunk: number
  ) => sql`UPDATE vatproof.uploads SET batch_id = NULL, spooled_at = now() + interval '30 days'
      WHERE batch_id = ${batchId}::uuid AND chunk >= ${chunk}`,
  release: (batchId: string, first: number, count: number, waitMs: bigint, failure: string | null) =>
    sql`SELECT vatproof.release_items(${batchId}::uuid, ${first}::int, ${count}::int, ${waitMs}, ${failure})`,
  // Finds the first batch that was cancelled after position `after`. The single statement sees one snapshot of the database, in which
  // every chunk is either in the spool or in the log. LIMIT keeps the planner from reading all items.
  nextCancelled: SqlSchema.findOneOption({
    Request: Schema.BigInt,
    Result: Cancelled,
    execute: (after) => sql`SELECT b.batch_id, b.account_id, b.key_id, b.cancelled_by, (
        SELECT t.item FROM vatproof.tasks t WHERE t.batch_id = b.batch_id AND t.closed_by IS NULL ORDER BY t.item LIMIT 1) AS item,
        (SELECT u.chunk FROM vatproof.uploads u WHERE u.batch_id = b.batch_id ORDER BY u.chunk LIMIT 1) IS NOT NULL AS is_spooled
      FROM (SELECT batch_id, account_id, key_id, cancelled_by FROM vatproof.batches WHERE cancelled_by > ${after} ORDER BY cancelled_by LIMIT 1) AS b`
  })
}))

/**
 * Creates `accept`, which assigns the chunks of an upload to its batch and appends BatchAccepted. `accept` returns false if this
 * event is stored already.
 */
const makeAccept = Effect.gen(function* () {
  const events = yield* EventStore
  const queries = yield* makeQueries

  return Effect.fn("PgBatchSpool.accept")(function* (batch: NewBatch) {
    const { batchId, caller, chunks, uploadId } = batch
    const event = BatchAccepted.make({
      batch_id: batchId,
      account_id: caller.accountId,
      key_id: caller.keyId,
      items: batch.items,
      malformed: batch.malformed,
      duplicates: batch.duplicates,
      chunks,
      ...(batch.maxAge === null ? {} : { max_age: batch.maxAge }),
      ...(batch.hasDetails ? { has_details: true } : {}),
      expires_at: batch.expiresAt,
      request_hash: batch.requestHash
    })
    const command = {
      stream: caller.stream,
      expectedVersion: null,
      events: [event] as const,
      identities: [{ eventId: batchId, causationId: null }],
      charge: null
    }
    const claimAll = Effect.gen(function* () {
      const claimed = yield* queries.claim({ uploadId, batchId })
      if (claimed.length !== chunks.length)
        return yield* new StoreUnavailable({
          cause: "The upload took more than an hour, and the service has deleted some of its parts meanwhile"
        })
    }).pipe(Effect.catchTag("SchemaError", Effect.die))
    return yield* events
      .appendWith([command], () => claimAll)
      .pipe(
        Effect.as(true),
        Effect.catchTag("VersionConflict", Effect.die),
        Effect.catchTag("SqlError", (error) =>
          error.reason._tag === "UniqueViolation" ? Effect.succeed(false) : QueryPolicy.refused(error)
        )
      )
  })
})

/**
 * Creates `openNext`, which appends the items of the next spooled chunk and returns the chunk. `openNext` returns null if it
 * appended no chunk. It appends only a chunk that is the next one of its batch and that the signed BatchAccepted binds.
 */
const makeOpenNext = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* EventStore
  const integrity = yield* Integrity
  const { altered } = yield* SignedLeaves.make
  const queries = yield* makeQueries

  /** Returns the event that accepted the batch of a chunk; null if it does not bind the chunk. */
  const acceptedOf = Effect.fnUntraced(function* ({ batch_id, chunk, items, opened, position }: Spooled) {
    const [event] = position === null ? [] : yield* events.read(Number(position), 1)
    if (event?.event_id !== batch_id || event.type !== BatchAccepted.type || (yield* altered([event])).length > 0) return null
    const accepted = yield* decodeAccepted(event.data)
    return BigInt(chunk) === opened && accepted.chunks[chunk] === digestOf(crypto, items) ? accepted : null
  })

  const setAside = Effect.fnUntraced(function* ({ batch_id, chunk }: Spooled) {
    const finding = `The spooled chunk ${chunk} of the batch ${batch_id} differs from the chunk that was accepted, so it is not opened`
    yield* integrity.reportAltered("event", finding)
    yield* Effect.logError(`${finding}; it stays in vatproof.uploads for 30 days without its batch`)
    yield* queries.setAside(batch_id, chunk).pipe(QueryPolicy.withRetry(retryFor))
    return null
  })

  /** Returns the command that appends the items of a chunk. If the batch is cancelled, the same command also cancels these items. */
  const commandOf = (
    row: Spooled,
    { account_id, expires_at, key_id, ...batch }: typeof BatchAccepted.schema.Type
  ): AppendCommand => {
    const { has_details, max_age } = batch
    const terms = { ...(has_details && { has_details }), ...(max_age !== undefined && { max_age }) }
    const { batch_id, chunk, document, is_cancelled, items } = row
    const first = chunk * batchItems.chunk
    const facts = { batch_id, account_id, key_id, first }
    const accepted = BatchItemsAccepted.make({ ...facts, ...terms, expires_at, ...items }, document ?? undefined)
    const identity = { eventId: computedId(crypto, "items", batch_id, String(first)), causationId: null }
    const cancellation = cancellationOf(crypto, facts, items.vat_ids.length)
    return {
      stream: `key-${key_id}`,
      expectedVersion: null,
      events: is_cancelled ? [accepted, cancellation.event] : [accepted],
      identities: is_cancelled ? [identity, cancellation.identity] : [identity],
      charge: null
    }
  }

  const open = Effect.fnUntraced(function* (row: Spooled): Effect.fn.Return<OpenedChunk | null, ChunkTaken | StoreUnavailable> {
    const { batch_id, chunk, document, is_cancelled, items } = row
    const accepted = yield* acceptedOf(row)
    if (accepted === null) return yield* setAside(row)
    const remove = Effect.gen(function* () {
      const removed = yield* queries.remove({ batchId: batch_id, chunk, isErased: document === null })
      if (removed.length === 0) return yield* new ChunkTaken({})
    }).pipe(Effect.catchTag("SchemaError", Effect.die))
    yield* events
      .appendWith([commandOf(row, accepted)], () => remove)
      .pipe(Effect.catchTag("VersionConflict", Effect.die), Effect.catchTag("SqlError", QueryPolicy.refused))
    return {
      batchId: batch_id,
      keyId: accepted.key_id,
      first: chunk * batchItems.chunk,
      isCancelled: is_cancelled,
      questions: items,
      maxAge: accepted.max_age ?? null,
      details: accepted.has_details === true && document === null ? null : document?.details
    }
  })

  return Effect.fn("PgBatchSpool.openNext")((after: string) =>
    queries.next(after).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.flatMap((row) => (Option.isSome(row) ? open(row.value) : Effect.succeed(null))),
      Effect.retry({ times: maxAttempts - 1, while: ({ _tag }) => _tag === "ChunkTaken" }),
      Effect.catchTag("ChunkTaken", () => Effect.succeed(null))
    )
  )
})

/**
 * Creates `endNext`, which cancels the pending items of one chunk. It chooses the first batch that was cancelled after position
 * `after`. It returns the position for the next call. It returns null if there is no such batch, or if all remaining items of the
 * batch are still spooled.
 */
const makeEndNext = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* EventStore
  const queries = yield* makeQueries

  return Effect.fn("PgBatchSpool.endNext")(function* (after: number) {
    const batch = yield* queries.nextCancelled(BigInt(after)).pipe(QueryPolicy.withRetry(retryFor))
    if (Option.isNone(batch)) return null
    const { account_id, batch_id, cancelled_by, is_spooled, item, key_id } = batch.value
    // The items of spooled chunks are cancelled when the chunks are appended.
    if (item === null) return is_spooled ? null : Number(cancelled_by)
    const first = item - (item % batchItems.chunk)
    const { event, identity } = cancellationOf(crypto, { batch_id, account_id, key_id, first }, batchItems.chunk)
    yield* events.appendFact(`key-${key_id}`, event, identity)
    return after
  })
})

/**
 * Returns the event that cancels a chunk of items. The id of the event is computed from the batch and the chunk, so that concurrent
 * replicas store the event only once.
 */
const cancellationOf = (
  crypto: Pick<PureCrypto, "sha256Hex">,
  facts: { readonly batch_id: string; readonly account_id: string; readonly key_id: string; readonly first: number },
  count: number
) => ({
  event: BatchItemsCancelled.make({ ...facts, count }),
  identity: { eventId: computedId(crypto, "items cancelled", facts.batch_id, String(facts.first)), causationId: null }
})

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const queries = yield* makeQueries
  return BatchSpool.of({
    keep: (uploadId, accountId, chunk, items) =>
      Effect.as(
        queries.keep(uploadId, accountId, chunk, items).pipe(QueryPolicy.withRetry(retryFor)),
        digestOf(crypto, items.questions)
      ),
    discard: (uploadId) => Effect.asVoid(queries.discard(uploadId).pipe(QueryPolicy.withRetry(retryFor))),
    accept: yield* makeAccept,
    openNext: yield* makeOpenNext,
    release: ({ batchId, first, questions }, wait, failure) =>
      Effect.asVoid(
        queries
          .release(batchId, first, questions.vat_ids.length, BigInt(Math.round(Duration.toMillis(wait))), failure)
          .pipe(QueryPolicy.withRetry(retryFor))
      ),
    endNext: yield* makeEndNext
  })
})

export const layer = Layer.effect(BatchSpool, make)

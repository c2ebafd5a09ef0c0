/** Reads batches from vatproof.batches, and the states of their items from vatproof.tasks. */
import { Array as Arr, Effect, Exit, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { BatchCancelled, type BatchFacts, type TaskCounts } from "#domain/pending/Batch.ts"
import { BatchStore } from "#domain/pending/BatchStore.ts"
import { computedId, ValidationState } from "#domain/validation/ValidationTask.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { elementType, sqlArray } from "#events/database/SqlArray.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"
import * as PgBatchResults from "#events/pending/PgBatchResults.ts"
import { EventStore } from "#events/store/EventStore.ts"
import * as GroupCommit from "#events/store/GroupCommit.ts"

const retryFor = "3 seconds"

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/u

const Row = Schema.Struct({
  batch_id: Schema.String,
  position: Schema.BigInt,
  account_id: Schema.String,
  key_id: Schema.String,
  items: Schema.Int,
  malformed: Schema.Int,
  duplicates: Schema.Int,
  request_hash: Schema.NullOr(Schema.String),
  accepted_at: Schema.DateTimeUtcFromDate,
  expires_at: Schema.DateTimeUtcFromDate,
  cancelled_by: Schema.NullOr(Schema.BigInt)
})

const Count = Schema.Struct({
  batch_id: Schema.String,
  state: ValidationState,
  member_state: Schema.String,
  waits: Schema.Boolean,
  count: Schema.BigInt
})

const makeQueries = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(Object.keys(Row.fields).join(", "))
  return {
    find: SqlSchema.findOneOption({
      Request: Schema.String,
      Result: Row,
      execute: (batchId) => sql`SELECT ${columns} FROM vatproof.batches WHERE batch_id = ${batchId}::uuid`
    }),
    findPage: SqlSchema.findAll({
      Request: Schema.Struct({ keyId: Schema.String, before: Schema.Int, limit: Schema.Int }),
      Result: Row,
      execute: ({ before, keyId, limit }) => sql`SELECT ${columns} FROM vatproof.batches
        WHERE key_id = ${keyId}::uuid AND position < ${BigInt(before)} ORDER BY position DESC LIMIT ${limit}`
    }),
    findCounts: SqlSchema.findAll({
      Request: Schema.Array(Schema.String),
      Result: Count,
      execute: (ids) => sql`SELECT u.batch_id, c.state, c.member_state, c.waits, c.count
        FROM unnest(${sqlArray(ids, elementType.uuid)}) AS u(batch_id) CROSS JOIN LATERAL (
          SELECT t.state, t.member_state, coalesce(t.failure = 'QUOTA', false) AS waits, count(*) AS count
          FROM vatproof.tasks t WHERE t.batch_id = u.batch_id GROUP BY 1, 2, 3) AS c`
    }),
    // LIMIT keeps the planner from reading all items.
    countOpen: SqlSchema.findOne({
      Request: Schema.Struct({ keyId: Schema.String, limit: Schema.Int }),
      Result: Schema.Struct({ count: Schema.BigInt }),
      execute: ({ keyId, limit }) => sql`SELECT count(*) AS count FROM (
        SELECT b.batch_id FROM (SELECT batch_id FROM vatproof.batches WHERE key_id = ${keyId}::uuid ORDER BY position DESC LIMIT 200) AS b
        WHERE coalesce((SELECT t.item FROM vatproof.tasks t WHERE t.batch_id = b.batch_id AND t.closed_by IS NULL ORDER BY t.item LIMIT 1),
          (SELECT u.chunk FROM vatproof.uploads u WHERE u.batch_id = b.batch_id ORDER BY u.chunk LIMIT 1)) IS NOT NULL
        LIMIT ${limit}) AS o`
    }),
    findOpen: SqlSchema.findAll({
      Request: Schema.Array(Schema.String),
      Result: Schema.Struct({ batch_id: Schema.String }),
      execute: (ids) => sql`SELECT u.batch_id FROM unnest(${sqlArray(ids, elementType.uuid)}) AS u(batch_id)
        WHERE coalesce((SELECT t.item FROM vatproof.tasks t WHERE t.batch_id = u.batch_id AND t.closed_by IS NULL ORDER BY t.item LIMIT 1),
          (SELECT s.chunk FROM vatproof.uploads s WHERE s.batch_id = u.batch_id ORDER BY s.chunk LIMIT 1)) IS NOT NULL`
    })
  }
})

/** Maximum number of callers that wait for a statement about batches. */
const maxWaiting = 20_000

/**
 * Groups concurrent reads into statements that run one at a time: hundreds of clients may wait for the same batch, and counting its
 * 50,000 items takes 15 ms.
 */
const makeGrouped = Effect.fnUntraced(function* ({ findCounts, findOpen }: Effect.Success<typeof makeQueries>) {
  const onFull = () => new StoreUnavailable({})
  const isOpen = yield* GroupCommit.make({
    maxBatch: 500,
    maxWaiting,
    onFull,
    run: Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const rows = yield* findOpen([...new Set(ids)]).pipe(QueryPolicy.withRetryForMany(retryFor))
      const open = new Set(rows.map(({ batch_id }) => batch_id))
      return ids.map((id) => Exit.succeed(open.has(id)))
    })
  })
  const count = yield* GroupCommit.make({
    maxBatch: 32,
    maxWaiting,
    onFull,
    run: Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const rows = yield* findCounts([...new Set(ids)]).pipe(QueryPolicy.withRetryForMany(retryFor))
      const counts = Arr.groupBy(rows, ({ batch_id }) => batch_id)
      return ids.map((id) => Exit.succeed(countsOf(counts[id] ?? [])))
    })
  })
  return { isOpen, count }
})

const factsOf = (row: typeof Row.Type): BatchFacts => ({
  batchId: row.batch_id,
  keyId: row.key_id,
  accountId: row.account_id,
  position: Number(row.position),
  items: row.items,
  malformed: row.malformed,
  duplicates: row.duplicates,
  requestHash: row.request_hash,
  acceptedAt: row.accepted_at,
  expiresAt: row.expires_at,
  isCancelled: row.cancelled_by !== null
})

const countsOf = (rows: ReadonlyArray<typeof Count.Type>): TaskCounts => {
  const sum = (predicate: (row: typeof Count.Type) => boolean) =>
    rows.filter(predicate).reduce((total, { count }) => total + Number(count), 0)
  const queues = rows.map(({ member_state }) => sum((row) => row.state === "pending" && row.member_state === member_state))
  return {
    final: sum(({ state }) => state === "final"),
    expired: sum(({ state }) => state === "expired"),
    cancelled: sum(({ state }) => state === "cancelled"),
    waitForQuota: sum(({ state, waits }) => state === "pending" && waits),
    open: sum(({ state }) => state === "pending"),
    longestQueue: Math.max(0, ...queues)
  }
}

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* EventStore
  const queries = yield* makeQueries
  const { count, isOpen } = yield* makeGrouped(queries)

  const find = Effect.fn("PgBatchStore.find")(function* (keyId: string, batchId: string) {
    if (!uuid.test(batchId)) return null
    const row = yield* queries.find(batchId).pipe(QueryPolicy.withRetry(retryFor))
    return Option.isSome(row) && row.value.key_id === keyId ? factsOf(row.value) : null
  })

  const cancel = Effect.fn("PgBatchStore.cancel")(function* ({ accountId, batchId, keyId }: BatchFacts) {
    const command = {
      stream: `key-${keyId}`,
      expectedVersion: null,
      events: [BatchCancelled.make({ batch_id: batchId, account_id: accountId, key_id: keyId })] as const,
      identities: [{ eventId: computedId(crypto, "cancelled", batchId), causationId: null }],
      mayBeStored: true,
      charge: null
    }
    yield* Effect.catchTag(events.append(command), refusals, Effect.die)
  })

  return BatchStore.of({
    find,
    page: (keyId, before, limit) =>
      Effect.map(queries.findPage({ keyId, before, limit }).pipe(QueryPolicy.withRetry(retryFor)), (rows) => rows.map(factsOf)),
    countOpen: (keyId, limit) =>
      Effect.map(queries.countOpen({ keyId, limit }).pipe(QueryPolicy.withRetry(retryFor)), ({ count }) => Number(count)),
    count,
    isOpen: (batchId) => (uuid.test(batchId) ? isOpen(batchId) : Effect.succeed(false)),
    results: yield* PgBatchResults.make,
    cancel
  })
})

/** Errors that a command without charge, precondition and expected version cannot cause. */
const refusals = ["QuotaReached", "RateLimitReached", "PreconditionFailed", "VersionConflict"] as const

export const layer = Layer.effect(BatchStore, make)

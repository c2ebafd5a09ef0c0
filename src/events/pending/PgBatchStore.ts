/** Reads batches from vatproof.batches, and the states of their items from vatproof.tasks. */
import { Array as Arr, DateTime, Effect, Exit, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { BatchAccepted, BatchCancelled, type BatchFacts, type TaskCounts } from "#domain/pending/Batch.ts"
import { BatchStore } from "#domain/pending/BatchStore.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { ValidationState } from "#domain/validation/ValidationTask.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as BatchCompletion from "#events/pending/BatchCompletion.ts"
import * as PgBatchResults from "#events/pending/PgBatchResults.ts"
import * as TaskEvents from "#events/pending/TaskEvents.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"

const retryFor = "3 seconds"

const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/u

const Row = Schema.Struct({
  batch_id: Schema.String,
  position: Schema.BigInt,
  key_id: Schema.String,
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

/**
 * Groups concurrent reads into statements that run one at a time: hundreds of clients may wait for the same batch, and counting its
 * 50,000 items takes 15 ms.
 */
const makeGrouped = Effect.fnUntraced(function* ({ findCounts, findOpen }: Effect.Success<typeof makeQueries>) {
  const isOpen = yield* GroupCommit.make({
    run: Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const rows = yield* findOpen([...new Set(ids)]).pipe(QueryPolicy.withRetryForMany(retryFor))
      const open = new Set(rows.map(({ batch_id }) => batch_id))
      return ids.map((id) => Exit.succeed(open.has(id)))
    })
  })
  const count = yield* GroupCommit.make({
    maxBatch: 32,
    run: Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
      const rows = yield* findCounts([...new Set(ids)]).pipe(QueryPolicy.withRetryForMany(retryFor))
      const counts = Arr.groupBy(rows, ({ batch_id }) => batch_id)
      return ids.map((id) => Exit.succeed(countsOf(counts[id] ?? [])))
    })
  })
  return { isOpen, count }
})

const decodeAccepted = EventTypes.decoder(BatchAccepted)

/** Creates a function that returns the facts about batches from their events. Refuses a row that contradicts its events. */
const makeFacts = Effect.map(TaskEvents.make, (events) =>
  Effect.fnUntraced(function* (rows: ReadonlyArray<typeof Row.Type>) {
    const accepted = yield* events.at(rows.map(({ position }) => position))
    const cancelled = yield* events.at(rows.map(({ cancelled_by, position }) => cancelled_by ?? position))
    return yield* Effect.forEach(
      Arr.zip(rows, Arr.zip(accepted, cancelled)),
      Effect.fnUntraced(function* ([{ batch_id: batchId, cancelled_by, key_id: keyId, position }, [event, cancelling]]) {
        const isCancelled = cancelling.type === BatchCancelled.type && cancelling.data.includes(`"batch_id":"${batchId}"`)
        if (event.event_id !== batchId || event.type !== BatchAccepted.type || isCancelled !== (cancelled_by !== null))
          return yield* events.refuse(position)
        const { account_id, duplicates, expires_at, items, key_id, malformed, request_hash } = yield* decodeAccepted(event.data)
        if (key_id !== keyId) return yield* events.refuse(position)
        const counts = { items, malformed, duplicates }
        const times = { acceptedAt: DateTime.toUtc(DateTime.makeUnsafe(event.occurred_at)), expiresAt: expires_at }
        const facts = { batchId, keyId, accountId: account_id, position: event.position, requestHash: request_hash, isCancelled }
        return { ...facts, ...counts, ...times } satisfies BatchFacts
      })
    )
  })
)

const countsOf = (rows: ReadonlyArray<typeof Count.Type>): TaskCounts => {
  const sum = (predicate: (row: typeof Count.Type) => boolean) =>
    rows.filter(predicate).reduce((total, { count }) => total + Number(count), 0)
  const queues = Object.values(Arr.groupBy(rows, ({ member_state }) => member_state)).map((ofState) => ({
    open: sum((row) => row.state === "pending" && ofState.includes(row)),
    final: sum((row) => row.state === "final" && ofState.includes(row))
  }))
  return {
    final: sum(({ state }) => state === "final"),
    expired: sum(({ state }) => state === "expired"),
    cancelled: sum(({ state }) => state === "cancelled"),
    waitForQuota: sum(({ state, waits }) => state === "pending" && waits),
    open: sum(({ state }) => state === "pending"),
    slowest: queues.reduce((one, other) => (other.open * (one.final + 1) > one.open * (other.final + 1) ? other : one), {
      open: 0,
      final: 0
    })
  }
}

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* EventStore
  const queries = yield* makeQueries
  const factsOf = yield* makeFacts
  const { count, isOpen } = yield* makeGrouped(queries)

  const find = Effect.fn("PgBatchStore.find")(function* (keyId: string, batchId: string) {
    if (!uuid.test(batchId)) return null
    const row = yield* queries.find(batchId).pipe(QueryPolicy.withRetry(retryFor))
    if (Option.isNone(row) || row.value.key_id !== keyId) return null
    const [batch = null] = yield* factsOf([row.value])
    return batch
  })

  const cancel = Effect.fn("PgBatchStore.cancel")(function* ({ accountId, batchId, keyId }: BatchFacts) {
    const event = BatchCancelled.make({ batch_id: batchId, account_id: accountId, key_id: keyId })
    yield* events.appendFact(`key-${keyId}`, event, { eventId: computedId(crypto, "cancelled", batchId), causationId: null })
  })

  return BatchStore.of({
    find,
    page: (keyId, before, limit) =>
      Effect.flatMap(queries.findPage({ keyId, before, limit }).pipe(QueryPolicy.withRetry(retryFor)), factsOf),
    countOpen: (keyId, limit) =>
      Effect.map(queries.countOpen({ keyId, limit }).pipe(QueryPolicy.withRetry(retryFor)), ({ count }) => Number(count)),
    count,
    isOpen: (batchId) => (uuid.test(batchId) ? isOpen(batchId) : Effect.succeed(false)),
    results: yield* PgBatchResults.make,
    cancel,
    completeNext: yield* BatchCompletion.make(count)
  })
})

export const layer = Layer.effect(BatchStore, make)

/** Reads the results of a batch from its items, their answers, and the personal documents. */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { batchItems, BatchItemsAccepted, type BatchResult } from "#domain/pending/Batch.ts"
import { ValidationState } from "#domain/validation/ValidationTask.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { elementType, sqlArray } from "#events/database/SqlArray.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"
import * as SignedLeaves from "#events/notary/SignedLeaves.ts"
import { failureOf, namesIn } from "#events/pending/PgValidationReader.ts"
import { logId } from "#events/store/AppendCommand.ts"
import * as Catalogue from "#events/store/Catalogue.ts"
import * as PersonalDocument from "#events/store/PersonalDocument.ts"
import { StoredEvent } from "#events/store/StoredEvent.ts"

const retryFor = "3 seconds"

const decodeItems = Catalogue.decoder(BatchItemsAccepted)
const decodeItemsDocument = Catalogue.documentDecoder(BatchItemsAccepted)
const decodeVerified = Catalogue.decoder(VatIdVerified)

const Task = Schema.Struct({
  item: Schema.Int,
  state: ValidationState,
  closed_by: Schema.NullOr(Schema.BigInt),
  failure: Schema.NullOr(Schema.String)
})

const makeQueries = Effect.map(SqlClient.SqlClient, (sql) => {
  // LIMIT 1 keeps the planner from a join that reads the whole log.
  const at = sql`CROSS JOIN LATERAL (SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events WHERE log_id = ${logId} AND position = l.position LIMIT 1) AS e`
  const columns = sql.literal(StoredEvent.columnsOf("e"))
  return {
    findAt: SqlSchema.findAll({
      Request: Schema.Array(Schema.Int),
      Result: StoredEvent,
      execute: (positions) =>
        sql`SELECT ${columns} FROM unnest(${sqlArray(positions.map(BigInt), elementType.int8)}) AS l(position) ${at}`
    }),
    /** Finds `count` chunks of a batch from the chunk number `first` on. Chunks are stored in order. */
    findChunks: SqlSchema.findAll({
      Request: Schema.Struct({ batchId: Schema.String, first: Schema.Int, count: Schema.Int }),
      Result: StoredEvent,
      execute: ({ batchId, count, first }) => sql`SELECT ${columns} FROM (SELECT position FROM vatproof.listed
          WHERE log_id = ${logId} AND list = ${`batch-${batchId}`} ORDER BY position OFFSET ${first} LIMIT ${count}) AS l ${at}
        ORDER BY e.position`
    }),
    findTasks: SqlSchema.findAll({
      Request: Schema.Struct({ batchId: Schema.String, items: Schema.Array(Schema.Int) }),
      Result: Task,
      execute: ({ batchId, items }) => sql`SELECT t.item, t.state, t.closed_by, t.failure
        FROM unnest(${sqlArray(items, elementType.int4)}) AS u(item) CROSS JOIN LATERAL (
          SELECT item, state, closed_by, failure FROM vatproof.tasks WHERE batch_id = ${batchId}::uuid AND item = u.item LIMIT 1) AS t`
    })
  }
})

/** Creates a function that returns the answers of events by position. An event that repeats a cached answer names the event with the answer. */
const makeAnswers = Effect.gen(function* () {
  const { findAt } = yield* makeQueries
  const { verified } = yield* SignedLeaves.make
  const documentsOf = yield* PersonalDocument.makeVerified
  const eventsAt = (positions: ReadonlyArray<number>) =>
    Effect.flatMap(findAt([...new Set(positions)]).pipe(QueryPolicy.withRetry(retryFor)), verified)

  return Effect.fnUntraced(function* (positions: ReadonlyArray<number>) {
    const closings = yield* Effect.forEach(yield* eventsAt(positions), (event) =>
      Effect.map(decodeVerified(event.data), (data) => ({ event, data }))
    )
    const holders = yield* eventsAt(closings.map(({ data, event }) => data.answer_position ?? event.position))
    const documents = yield* documentsOf(holders)
    const holderAt = new Map(holders.map((event) => [event.position, event]))
    return new Map(
      yield* Effect.forEach(closings, ({ data, event }) => {
        const holder = holderAt.get(data.answer_position ?? event.position) ?? event
        return Effect.map(namesIn(holder, documents.get(holder.position) ?? null), (names) => {
          const { answered_at, served, source, valid } = data
          return [event.position, { answer: { source, valid, answered_at, ...names }, served }] as const
        })
      })
    )
  })
})

/** Returns the items of a chunk as the client sent them. `task` is the item whose answer applies: the item itself, or the item that it duplicates. */
const chunkItems = Effect.fnUntraced(function* (event: StoredEvent, document: string | null) {
  const { duplicate_of, first, vat_ids } = yield* decodeItems(event.data)
  const sent = document === null ? null : yield* decodeItemsDocument(document)
  return vat_ids.map((vatId, index) => ({
    item: first + index,
    task: duplicate_of[first + index] ?? first + index,
    vatId,
    input: sent?.malformed[index] ?? null,
    own: {
      customId: sent?.custom_ids[index] ?? null,
      additional: sent?.additional?.[index] ?? [],
      columns: index === 0 ? (sent?.columns ?? []) : []
    }
  }))
})

export const make = Effect.gen(function* () {
  const queries = yield* makeQueries
  const answersAt = yield* makeAnswers
  const { verified } = yield* SignedLeaves.make
  const documentsOf = yield* PersonalDocument.makeVerified
  const chunkOf = (item: number) => Math.floor(item / batchItems.chunk)

  /** Returns the results of up to `limit` items of a batch, from the item number `first` on. */
  return Effect.fn("PgBatchResults.results")(function* (batchId: string, first: number, limit: number) {
    const end = first + limit
    const range = { batchId, first: chunkOf(first), count: chunkOf(end - 1) - chunkOf(first) + 1 }
    const chunks = yield* verified(yield* queries.findChunks(range).pipe(QueryPolicy.withRetry(retryFor)))
    const documents = yield* documentsOf(chunks)
    const all = yield* Effect.forEach(chunks, (event) => chunkItems(event, documents.get(event.position) ?? null))
    const sent = all.flat().filter(({ item }) => item >= first && item < end)
    const items = [...new Set(sent.flatMap(({ task, vatId }) => (vatId === null ? [] : [task])))]
    const tasks = yield* queries.findTasks({ batchId, items }).pipe(QueryPolicy.withRetry(retryFor))
    const byItem = new Map(tasks.map((task) => [task.item, task]))
    const answers = yield* answersAt(
      tasks.flatMap(({ closed_by, state }) => (state === "final" && closed_by !== null ? [Number(closed_by)] : []))
    )
    return sent.map(({ input, own, task: item, vatId }): BatchResult => {
      if (vatId === null) return { ...noResult, ...own, vatId: input, status: "invalid_format" }
      const task = byItem.get(item)
      if (task === undefined) return { ...noResult, ...own, vatId, status: "pending" }
      const closing = task.closed_by === null ? undefined : answers.get(Number(task.closed_by))
      const lastFailure = task.state === "pending" ? failureOf(task.failure) : null
      const isCached = closing !== undefined && closing.served !== "live"
      return { ...own, vatId, status: task.state, answer: closing?.answer ?? null, isCached, lastFailure }
    })
  })
})

const noResult = { answer: null, isCached: false, lastFailure: null }

/** Reads the results of a batch from its items, their answers, and the personal documents. */
import { Array as Arr, Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { batchItems, BatchItemsAccepted, BatchItemsCancelled, type BatchResult } from "#domain/pending/Batch.ts"
import { ReceiptIssued } from "#domain/receipts/Receipt.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { ValidationState } from "#domain/validation/ValidationTask.ts"
import { VatIdVerified } from "#domain/vat/ValidationEvents.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { failureOf, namesIn } from "#events/pending/PgValidationReader.ts"
import * as TaskEvents from "#events/pending/TaskEvents.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import * as SignedDocuments from "#events/log/notary/SignedDocuments.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"

const decodeItems = EventTypes.decoder(BatchItemsAccepted)
const decodeItemsDocument = EventTypes.documentDecoder(BatchItemsAccepted)
const decodeIssued = EventTypes.decoder(ReceiptIssued)
const decodeVerified = EventTypes.decoder(VatIdVerified)

const Task = Schema.Struct({
  item: Schema.Int,
  state: ValidationState,
  closed_by: Schema.NullOr(Schema.BigInt),
  failure: Schema.NullOr(Schema.String)
})

type Task = typeof Task.Type

const makeQueries = Effect.map(SqlClient.SqlClient, (sql) => ({
  /** Finds the positions of `count` chunks of a batch from the chunk number `first` on. Chunks are stored in order. */
  findChunks: SqlSchema.findAll({
    Request: Schema.Struct({ batchId: Schema.String, first: Schema.Int, count: Schema.Int }),
    Result: Schema.Struct({ position: Schema.BigInt }),
    execute: ({ batchId, count, first }) => sql`SELECT position FROM vatproof.listed
      WHERE log_id = ${logId} AND list = ${`batch-${batchId}`} ORDER BY position OFFSET ${first} LIMIT ${count}`
  }),
  findTasks: SqlSchema.findAll({
    Request: Schema.Struct({ batchId: Schema.String, items: Schema.Array(Schema.Int) }),
    Result: Task,
    execute: ({ batchId, items }) => sql`SELECT t.item, t.state, t.closed_by, t.failure
      FROM unnest(${sqlArray(items, elementType.int4)}) AS u(item) CROSS JOIN LATERAL (
        SELECT item, state, closed_by, failure FROM vatproof.tasks WHERE batch_id = ${batchId}::uuid AND item = u.item LIMIT 1) AS t`
  })
}))

/** Returns the answer in an event, and the position of the event with the answer that it repeats. */
const answerIn = Effect.fnUntraced(function* (event: StoredEvent) {
  if (event.type === ReceiptIssued.type) {
    const { answer, receipt } = yield* decodeIssued(event.data)
    return { event, facts: answer, position: null, isCached: false, consultationNumber: null, receiptId: receipt.receipt_id }
  }
  const data = yield* decodeVerified(event.data)
  const consultationNumber = data.answer?.consultation_number ?? null
  const isCached = data.served !== "live"
  return { event, facts: data, position: data.answer_position, isCached, consultationNumber, receiptId: null }
})

/** Creates a function that returns the answers in events by position. An event that repeats a cached answer names the event with the answer. */
const makeAnswers = Effect.gen(function* () {
  const events = yield* TaskEvents.make
  const documentsOf = yield* SignedDocuments.make

  return Effect.fnUntraced(function* (closings: ReadonlyArray<StoredEvent>) {
    const answers = yield* Effect.forEach(
      closings.filter(({ type }) => type === VatIdVerified.type || type === ReceiptIssued.type),
      answerIn
    )
    const holders = yield* events.at(answers.map(({ event, position }) => BigInt(position ?? event.position)))
    const documents = yield* documentsOf(holders)
    return new Map(
      yield* Effect.forEach(answers, ({ event, facts, ...more }, index) => {
        const holder = holders[index] ?? event
        return Effect.map(namesIn(holder, documents.get(holder.position) ?? null), (names) => {
          const { answered_at, source, valid } = facts
          return [event.position, { answer: { source, valid, answered_at, ...names }, ...more }] as const
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
      reference: sent?.details?.[index]?.reference ?? null,
      additional: sent?.additional?.[index] ?? [],
      columns: index === 0 ? (sent?.columns ?? []) : []
    }
  }))
})

export const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* TaskEvents.make
  const queries = yield* makeQueries
  const answersOf = yield* makeAnswers
  const documentsOf = yield* SignedDocuments.make
  const firstOf = (item: number) => item - (item % batchItems.chunk)

  const isClosedBy = (event: StoredEvent, batchId: string, { item, state }: Task, vatId: string | null | undefined) =>
    state === "cancelled" && event.type === BatchItemsCancelled.type
      ? TaskEvents.isOfChunk(event, BatchItemsCancelled.type, batchId, firstOf(item))
      : TaskEvents.isClosedBy(event, { id: computedId(crypto, "item", batchId, String(item)), vatId: vatId ?? "", state })

  /** Returns the results of up to `limit` items of a batch, from the item number `first` on. Refuses rows that contradict their events. */
  return Effect.fn("PgBatchResults.results")(function* (batchId: string, first: number, limit: number) {
    const end = first + limit
    const start = firstOf(first)
    const range = { batchId, first: start / batchItems.chunk, count: (firstOf(end - 1) - start) / batchItems.chunk + 1 }
    const listed = yield* queries.findChunks(range).pipe(QueryPolicy.withRetry(retryFor))
    const chunks = yield* events.at(listed.map(({ position }) => position))
    for (const [index, event] of chunks.entries())
      if (!TaskEvents.isOfChunk(event, BatchItemsAccepted.type, batchId, start + index * batchItems.chunk))
        return yield* events.refuse(event.position)
    const documents = yield* documentsOf(chunks)
    const all = yield* Effect.forEach(chunks, (event) => chunkItems(event, documents.get(event.position) ?? null))
    const sent = all.flat().filter(({ item }) => item >= first && item < end)
    const vatIds = new Map(sent.flatMap(({ task, vatId }) => (vatId === null ? [] : [[task, vatId] as const])))
    const tasks = yield* queries.findTasks({ batchId, items: [...vatIds.keys()] }).pipe(QueryPolicy.withRetry(retryFor))
    if (tasks.length !== vatIds.size) return yield* events.refuse(listed[0]?.position ?? -1)
    const closed = tasks.filter(({ closed_by }) => closed_by !== null)
    const closings = yield* events.at(closed.flatMap(({ closed_by }) => closed_by ?? []))
    for (const [task, event] of Arr.zip(closed, closings))
      if (!isClosedBy(event, batchId, task, vatIds.get(task.item))) return yield* events.refuse(event.position)
    const answers = yield* answersOf(closings)
    const byItem = new Map(tasks.map((task) => [task.item, task]))
    return sent.map(({ input, own, task: item, vatId }): BatchResult => {
      const task = byItem.get(item)
      if (vatId === null || task === undefined) return { ...noResult, ...own, vatId: input, status: "invalid_format" }
      const closing = task.closed_by === null ? undefined : answers.get(Number(task.closed_by))
      const lastFailure = task.state === "pending" ? failureOf(task.failure) : null
      const { answer, consultationNumber, isCached, receiptId } = closing ?? noResult
      return { ...own, vatId, status: task.state, answer, consultationNumber, isCached, lastFailure, receiptId }
    })
  })
})

const noResult = { answer: null, consultationNumber: null, isCached: false, lastFailure: null, receiptId: null }

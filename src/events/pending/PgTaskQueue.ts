/**
 * The queue of tasks in vatproof.tasks. The append writes the columns that derive from events. The functions in
 * migrations/functions/tasks.sql write the columns that schedule the attempts.
 */
import { DateTime, Duration, Effect, Exit, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Plans } from "#domain/callers/PlanLimits.ts"
import { billingPeriod, keyMeter } from "#domain/callers/BillingPeriod.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { BatchItemsAccepted } from "#domain/pending/Batch.ts"
import { makeLruCache } from "#domain/concurrency/LruCache.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import * as TaskEvents from "#events/pending/TaskEvents.ts"
import {
  closingId,
  requestIn,
  ValidationAccepted,
  ValidationCancelled,
  ValidationExpired
} from "#domain/validation/ValidationTask.ts"
import {
  type AcceptedTask,
  type ClaimedTask,
  type Deferral,
  type TaskEnd,
  type TaskSlots,
  TaskQueue
} from "#domain/pending/TaskQueue.ts"
import { keyPlaceholder } from "#events/callers/PgIdentity.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { elementType, sqlArray, type SqlColumn, sqlColumns } from "#events/log/database/SqlArray.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as SignedDocuments from "#events/log/notary/SignedDocuments.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { columnsFor, Int8 } from "#events/log/database/Rows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** Lease of a claimed task, in milliseconds. When it expires, another replica may claim the task. */
const leaseMs = BigInt(Duration.toMillis("30 seconds"))
const retryFor = "3 seconds"

const decodeAccepted = EventTypes.decoder(ValidationAccepted)
const decodeDocument = EventTypes.documentDecoder(ValidationAccepted)

const decodeItems = EventTypes.decoder(BatchItemsAccepted)
const decodeItemsDocument = EventTypes.documentDecoder(BatchItemsAccepted)

/** Maximum number of chunks of batches in memory. */
const maxChunks = 256

/** A chunk of a batch. `detailed` is null if its items are VAT IDs alone. */
interface Chunk {
  readonly maxAge: MaxAge
  readonly detailed: { readonly data: string; readonly first: number; readonly vatIds: ReadonlyArray<string | null> } | null
}

const Claimed = Schema.Struct({
  taskId: Schema.String,
  position: Int8,
  accountId: Schema.String,
  keyId: Schema.String,
  batchId: Schema.NullOr(Schema.String),
  vatId: Schema.String,
  memberState: Schema.String,
  attempts: Schema.Int,
  isExpired: Schema.Boolean,
  isCancelled: Schema.NullOr(Schema.Boolean),
  isProbe: Schema.Boolean,
  accepted: Schema.NullOr(Schema.String)
})

/** A change of the lease of a claimed task. `waitMs` is the time until the next attempt; null to extend the lease. */
interface LeaseChange extends Pick<ClaimedTask, "claim" | "memberState" | "taskId">, Omit<Deferral, "wait"> {
  readonly waitMs: bigint | null
}
const leaseColumns: ReadonlyArray<SqlColumn<LeaseChange>> = [
  ["taskId", elementType.uuid],
  ["claim", elementType.uuid]
]

/** Creates the function that claims tasks. A claim is not retried: after a lost response the leases expire. */
const makeClaim = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto

  const findClaimed = SqlSchema.findAll({
    Request: Schema.Struct({
      claim: Schema.String,
      states: Schema.Array(Schema.String),
      slots: Schema.Array(Schema.Int),
      answers: Schema.Array(Schema.NullOr(Schema.Int))
    }),
    Result: Claimed,
    execute: ({ answers, claim, slots, states }) => sql`SELECT ${sql.literal(columnsFor(Claimed.fields))}
      FROM vatproof.claim_tasks(${logId}::smallint, ${claim}::uuid, ${leaseMs}, ${sqlArray(states, elementType.text)},
        ${sqlArray(slots, elementType.int4)}, ${sqlArray(
          answers.map((ms) => (ms === null ? null : BigInt(ms))),
          elementType.int8
        )})`
  })

  return Effect.fnUntraced(function* (requested: ReadonlyArray<TaskSlots>) {
    const claim = crypto.uuidV7()
    const [states, slots] = [requested.map(({ memberState }) => memberState), requested.map(({ slots }) => slots)]
    const answers = requested.map(({ answerMs }) => answerMs)
    const rows = yield* findClaimed({ claim, states, slots, answers }).pipe(QueryPolicy.withRetry("0 millis"))
    return rows.map((row): ClaimedTask => ({ ...row, claim, isCancelled: row.isCancelled ?? false }))
  })
})

/** Creates the functions that extend the leases of claimed tasks and end them. */
const makeLeases = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const keepAll = (changes: ReadonlyArray<LeaseChange>) =>
    sql`SELECT vatproof.keep_tasks(${logId}::smallint, ${sql.csv(sqlColumns(changes, leaseColumns).map((column) => sql`${column}`))}, ${leaseMs})`
  // In the order of the member states, because all replicas lock the outages of registers in this order.
  const deferAll = (changes: ReadonlyArray<LeaseChange>) => {
    const sorted = changes.toSorted((one, other) => (one.memberState < other.memberState ? -1 : 1))
    const columns = sqlColumns(sorted, [
      ...leaseColumns,
      ["waitMs", elementType.int8],
      ["failure", elementType.text],
      ["isOutage", elementType.bool]
    ])
    return sql`SELECT vatproof.defer_tasks(${logId}::smallint, ${sql.csv(columns.map((column) => sql`${column}`))})`
  }
  /**
   * Extends leases (`waitMs` is null) and ends them. All waiting callers share the statements. The two statements of a replica never
   * run at the same time, because each skips tasks that the other has locked.
   */
  const change = yield* GroupCommit.make({
    procedure: "defer_tasks",
    run: Effect.fnUntraced(function* (asked: ReadonlyArray<ReadonlyArray<LeaseChange>>) {
      const changes = asked.flat()
      const [kept, deferred] = [changes.filter(({ waitMs }) => waitMs === null), changes.filter(({ waitMs }) => waitMs !== null)]
      if (kept.length > 0 || deferred.length === 0) yield* keepAll(kept).pipe(QueryPolicy.withRetryForMany(retryFor))
      if (deferred.length > 0) yield* deferAll(deferred).pipe(QueryPolicy.withRetryForMany(retryFor))
      return asked.map(() => Exit.void)
    })
  })

  const keep = (tasks: ReadonlyArray<ClaimedTask>) =>
    change(tasks.map((task) => ({ ...task, waitMs: null, failure: null, isOutage: false })))
  const defer = (task: ClaimedTask, { wait, ...deferral }: Deferral) =>
    change([{ ...task, ...deferral, waitMs: BigInt(Math.round(Duration.toMillis(wait))) }])

  return { keep, defer }
})

const noKey = "00000000-0000-0000-0000-000000000000"

/** Creates the effect that resumes tasks whose key has quota again. */
const makeResume = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const plans = Object.entries((yield* Plans).byName)
  const names = sqlArray(
    plans.map(([name]) => name),
    elementType.text
  )
  const limits = sqlArray(
    plans.map(([, { perMonth }]) => BigInt(perMonth)),
    elementType.int8
  )
  const resumeAfter = SqlSchema.findOne({
    Request: Schema.Struct({ after: Schema.String, meter: Schema.String }),
    Result: Schema.Struct({ last_key: Schema.NullOr(Schema.String), resumed: Schema.Int }),
    execute: ({ after, meter }) => sql`SELECT last_key, resumed
      FROM vatproof.resume_tasks(${logId}::smallint, ${after}::uuid, ${meter}, ${names}, ${limits})`
  })
  let after = noKey

  return Effect.gen(function* () {
    const meter = keyMeter(keyPlaceholder, billingPeriod(yield* DateTime.now))
    const { last_key, resumed } = yield* resumeAfter({ after, meter }).pipe(QueryPolicy.withRetry("0 millis"))
    after = last_key ?? noKey
    return resumed
  })
})

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const crypto = yield* Crypto
  const documentsOf = yield* SignedDocuments.make
  const { at, refuse } = yield* TaskEvents.make
  const chunks = makeLruCache<Chunk>(maxChunks)
  const claim = yield* makeClaim
  const leases = yield* makeLeases
  const resume = yield* makeResume

  const documentOf = (event: { readonly position: number; readonly data: string }) =>
    Effect.map(documentsOf([event]), (documents) => documents.get(event.position) ?? null)

  const chunkAt = Effect.fnUntraced(function* (position: number) {
    const known = chunks.get(String(position))
    if (known !== undefined) return known
    const [event] = yield* at([BigInt(position)])
    if (event === undefined) return yield* refuse(position)
    const { data } = event
    const { first, has_details = false, max_age = null, vat_ids } = yield* decodeItems(data)
    const chunk: Chunk = { maxAge: max_age, detailed: has_details ? { data, first, vatIds: vat_ids } : null }
    chunks.set(String(position), chunk)
    return chunk
  })

  /** Returns the request of an item of a batch; null if its details were erased. */
  const requestOfItem = Effect.fnUntraced(function* ({ batchId, position, taskId, vatId }: ClaimedTask) {
    const { detailed, maxAge } = yield* chunkAt(position)
    if (detailed === null) return { maxAge, ...requestIn({}) }
    const document = yield* documentOf({ position, data: detailed.data })
    if (document === null) return null
    const { details = [] } = yield* decodeItemsDocument(document)
    const isAsked = (item: string | null, index: number) =>
      item === vatId && computedId(crypto, "item", batchId ?? "", String(detailed.first + index)) === taskId
    const asked = details[detailed.vatIds.findIndex(isAsked)]
    return asked === undefined ? yield* refuse(position) : { maxAge, ...requestIn(asked) }
  })

  const accepted = Effect.fnUntraced(function* (claimed: ClaimedTask): Effect.fn.Return<AcceptedTask, StoreUnavailable> {
    const { accepted: data, accountId, keyId, position, vatId } = claimed
    if (data === null) return { accountId, keyId, vatId, request: yield* requestOfItem(claimed) }
    const { account_id, force_live, key_id, max_age = null, personal_sha256, vat_id } = yield* decodeAccepted(data)
    const task = { accountId: account_id, keyId: key_id, vatId: vat_id }
    const maxAge = force_live ? 0 : max_age
    if (personal_sha256 === undefined) return { ...task, request: { maxAge, ...requestIn({}) } }
    const document = yield* documentOf({ position, data })
    return { ...task, request: document === null ? null : { maxAge, ...requestIn(yield* decodeDocument(document)) } }
  })

  const close = Effect.fnUntraced(function* (taskId: string, task: AcceptedTask, end: TaskEnd) {
    const facts = { account_id: task.accountId, key_id: task.keyId, vat_id: task.vatId }
    const event = end === "expired" ? ValidationExpired.make(facts) : ValidationCancelled.make({ ...facts, reason: end })
    const identity = { eventId: closingId(crypto, taskId), causationId: taskId }
    yield* events.appendFact(`key-${task.keyId}`, event, identity)
  })

  return TaskQueue.of({ claim, ...leases, resume, accepted, close })
})

export const layer = Layer.effect(TaskQueue, make)

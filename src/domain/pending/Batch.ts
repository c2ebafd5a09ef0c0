/** Batches of validations: their limits, events and results (rules 81-84). */
import { type DateTime, Duration, Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import { AcceptedDocument } from "#domain/validation/ValidationTask.ts"
import type { LastFailure } from "#domain/pending/ValidationReader.ts"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"

/**
 * Maximum number of items of a batch, and of a chunk. One event stores one chunk, so that the append locks the log only briefly.
 */
export const batchItems = { max: 50_000, chunk: 500 }

/** Time until pending items expire. It is longer than a month, so that a batch without quota continues in the next month. */
export const batchExpiry = Duration.days(35)

/** `max_age` is the maximum age of a stored answer in seconds; absent without a limit. With `has_details`, items have more than a VAT ID. */
const terms = { max_age: Schema.optionalKey(Schema.Int), has_details: Schema.optionalKey(Schema.Literal(true)) }

const batchFields = { batch_id: Schema.String, account_id: Schema.String, key_id: Schema.String }

/**
 * A batch was accepted. The id of the event is the id of the batch. Later events store the items. `malformed` counts the items
 * without a readable VAT ID, `duplicates` the items that repeat the VAT ID of an earlier item. `chunks` has the SHA-256 (hex) of the
 * `vat_ids` and `duplicate_of` of each BatchItemsAccepted, as canonical JSON. `request_hash` is a keyed hash of the items; null without an
 * Idempotency-Key.
 */
export const BatchAccepted = DomainEvent.define(
  "BatchAccepted",
  1,
  Schema.Struct({
    ...batchFields,
    items: Schema.Int,
    malformed: Schema.Int,
    duplicates: Schema.Int,
    chunks: Schema.Array(Schema.String),
    ...terms,
    expires_at: Schema.DateTimeUtcFromString,
    request_hash: Schema.NullOr(Schema.String)
  })
)

/**
 * The VAT IDs of a chunk; null for an item without a readable VAT ID. `duplicate_of` maps the number of a duplicate item to the
 * number of the first item with the same VAT ID.
 */
export const BatchQuestions = Schema.Struct({
  vat_ids: Schema.Array(Schema.NullOr(Schema.String)),
  duplicate_of: Schema.Record(Schema.String, Schema.Int)
})
export type BatchQuestions = typeof BatchQuestions.Type

/**
 * The caller's ids of the items of a chunk, the text of the items without a readable VAT ID, and the cells of additional columns of a CSV
 * file. Only the first chunk of the file has `columns`, the names of these columns. `details` has the requester, company data and reference of each item.
 */
export const BatchItemsDocument = Schema.Struct({
  custom_ids: Schema.Array(Schema.String),
  malformed: Schema.Array(Schema.NullOr(Schema.String)),
  details: Schema.optionalKey(Schema.Array(AcceptedDocument)),
  additional: Schema.optionalKey(Schema.Array(Schema.Array(Schema.String))),
  columns: Schema.optionalKey(Schema.Array(Schema.String))
})
export type BatchItemsDocument = typeof BatchItemsDocument.Type

/**
 * A chunk of a batch was stored. `first` is the number of its first item, from 0. Each item is a task, except duplicates and items without a
 * readable VAT ID (null). The id of a task is computed from the batch and the number of the item. The personal document has the caller's ids
 * of the items, the text of the items without a readable VAT ID, and the additional columns of a CSV file.
 */
export const BatchItemsAccepted = DomainEvent.definePersonal(
  [
    "BatchItemsAccepted",
    1,
    Schema.Struct({
      ...batchFields,
      first: Schema.Int,
      ...terms,
      expires_at: Schema.DateTimeUtcFromString,
      ...BatchQuestions.fields,
      ...DomainEvent.personalDigest
    })
  ],
  BatchItemsDocument,
  "answers"
)

/** The batch was cancelled. Later events cancel its pending items. */
export const BatchCancelled = DomainEvent.define("BatchCancelled", 1, Schema.Struct(batchFields))

/**
 * The items of a chunk that were still pending were cancelled. The chunk
 * has `count` items; `first` is the number of its first item.
 */
export const BatchItemsCancelled = DomainEvent.define(
  "BatchItemsCancelled",
  1,
  Schema.Struct({ ...batchFields, first: Schema.Int, count: Schema.Int })
)

/**
 * No item of the batch is pending any more: `final` items were answered, the others expired or were cancelled. Duplicates and items
 * without a readable VAT ID do not count.
 */
export const BatchCompleted = DomainEvent.define(
  "BatchCompleted",
  1,
  Schema.Struct({ ...batchFields, final: Schema.Int, expired: Schema.Int, cancelled: Schema.Int })
)

/**
 * An item as the client sent it. `details` is absent if it is a VAT ID alone. `additional` are the cells of the additional columns of a CSV file. Only the first item has `columns`, the
 * names of these columns.
 */
export interface BatchItem {
  readonly customId: string
  readonly input: string
  readonly details?: AcceptedDocument
  readonly additional?: ReadonlyArray<string>
  readonly columns?: ReadonlyArray<string>
}

/** An accepted batch. `position` is the position of its event BatchAccepted. */
export interface BatchFacts {
  readonly batchId: string
  readonly keyId: string
  readonly accountId: string
  readonly position: number
  readonly items: number
  readonly malformed: number
  readonly duplicates: number
  readonly requestHash: string | null
  readonly acceptedAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
  readonly isCancelled: boolean
}

/** The number of tasks of a batch by state. Items that are not in the log yet do not count. */
export interface TaskCounts {
  readonly final: number
  readonly expired: number
  readonly cancelled: number
  /** Number of pending tasks that wait for new quota. */
  readonly waitForQuota: number
  /** Number of all pending tasks. */
  readonly open: number
  /** The pending and the answered tasks of the member state whose pending tasks will take the longest. */
  readonly slowest: { readonly open: number; readonly final: number }
}

/** An accepted batch with its progress. `isPaused` is true if tasks of the batch wait for quota, and the quota of the key is used up. */
export interface BatchRecord extends BatchFacts {
  readonly isPaused: boolean
  readonly counts: TaskCounts & { readonly pending: number }
}

/**
 * The result of an item. If `status` is `invalid_format`, `vatId` is the text that the client sent. This text and `customId` are
 * null after their erasure, and `reference` as well. `additional` and `columns` are as in BatchItem; they are empty without such columns and after their erasure.
 */
export interface BatchResult {
  readonly reference: string | null
  readonly additional: ReadonlyArray<string>
  readonly columns: ReadonlyArray<string>
  readonly customId: string | null
  readonly vatId: string | null
  readonly status: "pending" | "final" | "expired" | "cancelled" | "invalid_format"
  readonly answer: CachedAnswer | null
  readonly consultationNumber: string | null
  /** The receipt of a qualified confirmation, if one was requested. */
  readonly receiptId: string | null
  readonly isCached: boolean
  readonly lastFailure: LastFailure | null
}

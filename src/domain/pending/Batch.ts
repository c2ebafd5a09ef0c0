/** Batches of validations: their events, records and results (rules 81-84). */
import { type DateTime, Duration, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { LastFailure } from "#domain/pending/ValidationReader.ts"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"

/** Maximum number of items of a batch, and of a chunk. One event stores a chunk, which bounds how long the append locks the log. */
export const batchItems = { max: 50_000, chunk: 500 }

/** Time until pending items expire. Longer than a month, so that a batch that waits for quota continues in the next month. */
export const batchExpiry = Duration.days(35)

const batchFields = { batch_id: Schema.String, account_id: Schema.String, key_id: Schema.String }

/**
 * A batch was accepted. The event's id is the batch's id. Later events store the items. `malformed` counts the items without a readable VAT ID,
 * `duplicates` the items that repeat the VAT ID of an earlier one. `request_hash` is a keyed hash of the items; null without an Idempotency-Key.
 */
export const BatchAccepted = DomainEvent.define(
  "BatchAccepted",
  1,
  Schema.Struct({
    ...batchFields,
    items: Schema.Int,
    malformed: Schema.Int,
    duplicates: Schema.Int,
    expires_at: Schema.DateTimeUtcFromString,
    request_hash: Schema.NullOr(Schema.String)
  })
)

/** VAT IDs of a chunk, null without a readable one. `duplicate_of` maps the number of a duplicate to the number of the first item with its VAT ID. */
export const BatchQuestions = Schema.Struct({
  vat_ids: Schema.Array(Schema.NullOr(Schema.String)),
  duplicate_of: Schema.Record(Schema.String, Schema.Int)
})
export type BatchQuestions = typeof BatchQuestions.Type

/** The caller's ids of the items of a chunk, and the text of the items without a readable VAT ID. */
export const BatchItemsDocument = Schema.Struct({
  custom_ids: Schema.Array(Schema.String),
  malformed: Schema.Array(Schema.NullOr(Schema.String))
})
export type BatchItemsDocument = typeof BatchItemsDocument.Type

/**
 * A chunk of a batch was stored. `first` is the number of its first item, from 0. Each item is a task, whose id is computed from batch and number.
 * Items without a readable VAT ID (null) and duplicates are not tasks. The document has the caller's ids of the items, and the text of the null items.
 */
export const BatchItemsAccepted = DomainEvent.definePersonal(
  [
    "BatchItemsAccepted",
    1,
    Schema.Struct({
      ...batchFields,
      first: Schema.Int,
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

/** The pending items of a chunk were cancelled: those among `count` items from the number `first` on. */
export const BatchItemsCancelled = DomainEvent.define(
  "BatchItemsCancelled",
  1,
  Schema.Struct({ ...batchFields, first: Schema.Int, count: Schema.Int })
)

/** An item as the client sent it. */
export interface BatchItem {
  readonly customId: string
  readonly input: string
}

/** `position` is that of the event `BatchAccepted`. */
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

/** Number of tasks of a batch, by state. Items that are not in the log yet are not counted. */
export interface TaskCounts {
  readonly final: number
  readonly expired: number
  readonly cancelled: number
  /** Open tasks that wait for a new quota. */
  readonly waitForQuota: number
  /** Open tasks of the member state with the most open tasks, which determines the estimated end. */
  readonly longestQueue: number
}

export interface BatchRecord extends BatchFacts {
  readonly counts: TaskCounts & { readonly pending: number }
}

/** For `invalid_format`, `vatId` is the text as sent. That text and `customId` are null after their erasure. */
export interface BatchResult {
  readonly customId: string | null
  readonly vatId: string | null
  readonly status: "pending" | "final" | "expired" | "cancelled" | "invalid_format"
  readonly answer: CachedAnswer | null
  readonly isCached: boolean
  readonly lastFailure: LastFailure | null
}

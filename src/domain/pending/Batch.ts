/** Batches of validations: their facts, and what is told of them (rules 81-84). */
import { type DateTime, Duration, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { LastFailure } from "#domain/pending/ValidationReader.ts"
import type { CachedAnswer } from "#domain/vat/AnswerCache.ts"

/** Items of a batch at most, and of one event: the log is locked for no longer than one event takes. */
export const batchItems = { most: 50_000, chunk: 500 }

/** Longer than a month, so that a batch outlasts the pause until the next quota. */
export const batchExpiry = Duration.days(35)

const ofBatch = { batch_id: Schema.String, account_id: Schema.String, key_id: Schema.String }

/**
 * A batch was accepted; the event's id is the batch's. Its items follow in events of their own. `malformed` items have no VAT ID that could be asked;
 * `duplicates` repeat the VAT ID of an earlier item. `request_hash` is a keyed hash of the items, if they came with an Idempotency-Key.
 */
export const BatchAccepted = DomainEvent.define(
  "BatchAccepted",
  1,
  Schema.Struct({
    ...ofBatch,
    items: Schema.Int,
    malformed: Schema.Int,
    duplicates: Schema.Int,
    expires_at: Schema.DateTimeUtcFromString,
    request_hash: Schema.NullOr(Schema.String)
  })
)

/** What a chunk of items asks. `duplicate_of` has the number of the first item with the same VAT ID, by the number of the item. */
export const BatchQuestions = Schema.Struct({
  vat_ids: Schema.Array(Schema.NullOr(Schema.String)),
  duplicate_of: Schema.Record(Schema.String, Schema.Int)
})
export type BatchQuestions = typeof BatchQuestions.Type

/** The caller's own ids of the items of a chunk, and the text of those that have no readable VAT ID. */
export const BatchItemsDocument = Schema.Struct({
  custom_ids: Schema.Array(Schema.String),
  malformed: Schema.Array(Schema.NullOr(Schema.String))
})
export type BatchItemsDocument = typeof BatchItemsDocument.Type

/**
 * Items of a batch; `first` is the number of the first, from 0. Each is a task, whose id is computed from batch and number. An item without a readable
 * VAT ID is null and no task; a duplicate is no task either. The document has the caller's own ids of the items, and the text of those that are null.
 */
export const BatchItemsAccepted = DomainEvent.definePersonal(
  [
    "BatchItemsAccepted",
    1,
    Schema.Struct({
      ...ofBatch,
      first: Schema.Int,
      expires_at: Schema.DateTimeUtcFromString,
      ...BatchQuestions.fields,
      ...DomainEvent.personalDigest
    })
  ],
  BatchItemsDocument,
  "answers"
)

/** The batch was cancelled: its items end in the events that follow. */
export const BatchCancelled = DomainEvent.define("BatchCancelled", 1, Schema.Struct(ofBatch))

/** The pending ones of `count` items from the number `first` on ended without an answer. */
export const BatchItemsCancelled = DomainEvent.define(
  "BatchItemsCancelled",
  1,
  Schema.Struct({ ...ofBatch, first: Schema.Int, count: Schema.Int })
)

/** An item as it was sent. */
export interface BatchItem {
  readonly customId: string
  readonly input: string
}

/** `position` is that of its acceptance. */
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

/** What became of the items that are tasks. The others of the batch are still to be opened. */
export interface TaskCounts {
  readonly final: number
  readonly expired: number
  readonly cancelled: number
  /** Open tasks that wait for a new quota. */
  readonly waitForQuota: number
  /** Open tasks of the member state that has most of them: what it takes longest to ask. */
  readonly longestQueue: number
}

export interface BatchRecord extends BatchFacts {
  readonly counts: TaskCounts & { readonly pending: number }
}

/** `vatId` is the text as it was sent if it is no VAT ID; it and `customId` are null once erased. */
export interface BatchResult {
  readonly customId: string | null
  readonly vatId: string | null
  readonly status: "pending" | "final" | "expired" | "cancelled" | "invalid_format"
  readonly answer: CachedAnswer | null
  readonly isCached: boolean
  readonly lastFailure: LastFailure | null
}

/**
 * Moves the items of an upload into the log: spools them while they arrive,
 * accepts all of them at once, then appends them chunk by chunk.
 */
import { Context, type DateTime, type Duration, type Effect } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import type { BatchItemsDocument, BatchQuestions } from "#domain/pending/Batch.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The items that one event stores, and their personal document. */
export interface BatchChunk {
  readonly questions: BatchQuestions
  readonly document: BatchItemsDocument
}

export interface NewBatch {
  readonly batchId: string
  readonly uploadId: string
  readonly caller: KeyCaller
  /** The digest of each chunk. */
  readonly chunks: ReadonlyArray<string>
  readonly items: number
  readonly malformed: number
  readonly duplicates: number
  /** True if an item has more than a VAT ID. */
  readonly hasDetails: boolean
  readonly maxAge: MaxAge
  readonly expiresAt: DateTime.Utc
  /** Null without an Idempotency-Key. */
  readonly requestHash: string | null
}

/**
 * A chunk that was appended to the log. `first` is the number of its
 * first item. If `isCancelled`, its items were cancelled at once.
 */
export interface OpenedChunk {
  readonly batchId: string
  readonly keyId: string
  readonly first: number
  readonly isCancelled: boolean
  readonly questions: BatchQuestions
  readonly maxAge: MaxAge
  /** The details of each item; null if they were erased. */
  readonly details: BatchItemsDocument["details"] | null
}

export class BatchSpool extends Context.Service<
  BatchSpool,
  {
    /** Stores the chunk number `chunk` of an upload, and returns its digest. A repeated call has no effect. */
    readonly keep: (
      uploadId: string,
      accountId: string,
      chunk: number,
      items: BatchChunk
    ) => Effect.Effect<string, StoreUnavailable>
    /** Deletes the chunks of an upload, unless the upload was accepted. */
    readonly discard: (uploadId: string) => Effect.Effect<void, StoreUnavailable>
    /** Accepts all chunks of an upload as a batch. Returns false if a batch with this id exists. */
    readonly accept: (batch: NewBatch) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Appends the next chunk of the batch whose id follows `after`, so that batches take turns. Returns null if no chunk is spooled.
     * Sets a chunk aside, and the later chunks of its batch, if the event that accepted the batch does not bind it.
     */
    readonly openNext: (after: string) => Effect.Effect<OpenedChunk | null, StoreUnavailable>
    /**
     * Lets the task engine try the open items of a chunk after `wait`. Without this call the engine tries them 30 s after their
     * append. `failure` is the reason for the wait; null without a reason.
     */
    readonly release: (
      chunk: OpenedChunk,
      wait: Duration.Duration,
      failure: string | null
    ) => Effect.Effect<void, StoreUnavailable>
    /**
     * Cancels the pending items of the next chunk of the first batch that was cancelled after the position `after`. Returns the position
     * for the next call. Returns null if no such batch exists, or if the remaining items of the batch are still in the spool.
     */
    readonly endNext: (after: number) => Effect.Effect<number | null, StoreUnavailable>
  }
>()("vatproof/domain/pending/BatchSpool") {}

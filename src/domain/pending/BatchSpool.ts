/** Moves items from an upload into the log: spools them while they arrive, accepts them as a whole, then appends them chunk by chunk. */
import { Context, type DateTime, type Duration, type Effect } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import type { BatchItemsDocument, BatchQuestions } from "#domain/pending/Batch.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The items of one event. */
export interface BatchChunk {
  readonly questions: BatchQuestions
  readonly document: BatchItemsDocument
}

export interface NewBatch {
  readonly batchId: string
  readonly uploadId: string
  readonly caller: KeyCaller
  readonly chunks: number
  readonly items: number
  readonly malformed: number
  readonly duplicates: number
  readonly expiresAt: DateTime.Utc
  /** Null without an Idempotency-Key. */
  readonly requestHash: string | null
}

/** A chunk that is in the log; `first` is the number of its first item. The items of a cancelled batch are cancelled already. */
export interface OpenedChunk {
  readonly batchId: string
  readonly keyId: string
  readonly first: number
  readonly isCancelled: boolean
  readonly questions: BatchQuestions
}

export class BatchSpool extends Context.Service<
  BatchSpool,
  {
    /** Spools a chunk of an upload. Repeated calls have no effect. */
    readonly keep: (
      uploadId: string,
      accountId: string,
      chunk: number,
      items: BatchChunk
    ) => Effect.Effect<void, StoreUnavailable>
    /** Deletes the chunks of an upload, unless the upload was accepted. */
    readonly discard: (uploadId: string) => Effect.Effect<void, StoreUnavailable>
    /** Accepts all chunks of the upload. Returns false if a batch with this id exists. */
    readonly accept: (batch: NewBatch) => Effect.Effect<boolean, StoreUnavailable>
    /** Appends the next chunk of the batch that follows `after` by id, so that batches alternate. Returns null if no chunk is spooled. */
    readonly openNext: (after: string) => Effect.Effect<OpenedChunk | null, StoreUnavailable>
    /**
     * Releases the open items of a chunk to the task engine, which tries them after `wait`. Unreleased items become due after 30 s. `failure` is the
     * reason of the wait; null without one.
     */
    readonly release: (
      chunk: OpenedChunk,
      wait: Duration.Duration,
      failure: string | null
    ) => Effect.Effect<void, StoreUnavailable>
    /**
     * Cancels a chunk of pending items of the first batch that was cancelled after the position `after`. Returns the position to continue from; null
     * if no such batch has items to cancel now.
     */
    readonly endNext: (after: number) => Effect.Effect<number | null, StoreUnavailable>
  }
>()("vatproof/domain/pending/BatchSpool") {}

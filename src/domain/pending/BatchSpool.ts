/** The way of items from an upload into the log: kept beside it while they arrive, accepted as a whole, then stored chunk by chunk. */
import { Context, type DateTime, type Duration, type Effect } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import type { BatchItemsDocument, BatchQuestions } from "#domain/pending/Batch.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Items that became one event. */
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

/** Items that are in the log now; `first` is the number of the first. Those of a cancelled batch have ended. */
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
    readonly keep: (
      uploadId: string,
      accountId: string,
      chunk: number,
      items: BatchChunk
    ) => Effect.Effect<void, StoreUnavailable>
    /** Deletes what an upload kept, unless it was accepted. */
    readonly discard: (uploadId: string) => Effect.Effect<void, StoreUnavailable>
    /** Accepts all chunks of the upload. False: a batch with this id is accepted already. */
    readonly accept: (batch: NewBatch) => Effect.Effect<boolean, StoreUnavailable>
    /** Stores the next chunk of an accepted batch; of that after `batchId`, so that batches take turns. Null if there is none. */
    readonly openNext: (after: string) => Effect.Effect<OpenedChunk | null, StoreUnavailable>
    /**
     * Gives the items of a chunk that are still open to the task engine, which tries them after `wait`; before that they are left alone for 30 s.
     * `failure` is why they wait, null if they do not.
     */
    readonly release: (
      chunk: OpenedChunk,
      wait: Duration.Duration,
      failure: string | null
    ) => Effect.Effect<void, StoreUnavailable>
    /**
     * Ends a chunk of pending items of the first batch that was cancelled after a position. Returns the position to go on from, null if there is
     * nothing left to end.
     */
    readonly endNext: (after: number) => Effect.Effect<number | null, StoreUnavailable>
  }
>()("vatproof/domain/pending/BatchSpool") {}

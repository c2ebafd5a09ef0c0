/** Reads and cancels the accepted batches of an API key. */
import { Context, type Effect } from "effect"
import type { BatchFacts, BatchResult, TaskCounts } from "#domain/pending/Batch.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export class BatchStore extends Context.Service<
  BatchStore,
  {
    /** Returns null if the batch does not exist or belongs to another key. */
    readonly find: (keyId: string, batchId: string) => Effect.Effect<BatchFacts | null, StoreUnavailable>
    /** Returns the batches below the position `before`, newest first. */
    readonly page: (keyId: string, before: number, limit: number) => Effect.Effect<ReadonlyArray<BatchFacts>, StoreUnavailable>
    /** Counts the open ones of the key's newest 200 batches. The count stops at `limit`. */
    readonly countOpen: (keyId: string, limit: number) => Effect.Effect<number, StoreUnavailable>
    readonly count: (batchId: string) => Effect.Effect<TaskCounts, StoreUnavailable>
    /** Returns whether an item is pending or not in the log yet. */
    readonly isOpen: (batchId: string) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Returns results in input order from the item `first` (from 0) on. `limit` is at most `batchItems.chunk`. Items that are not in the log yet have no
     * result.
     */
    readonly results: (
      batchId: string,
      first: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<BatchResult>, StoreUnavailable>
    /** Records the cancellation. Repeated calls have no effect. */
    readonly cancel: (batch: BatchFacts) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/pending/BatchStore") {}

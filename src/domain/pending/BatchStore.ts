/** Reads and cancels the accepted batches of an API key. */
import { Context, type Effect } from "effect"
import type { BatchFacts, BatchResult, TaskCounts } from "#domain/pending/Batch.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export class BatchStore extends Context.Service<
  BatchStore,
  {
    /** Returns a batch; null if it does not exist or belongs to another key. */
    readonly find: (keyId: string, batchId: string) => Effect.Effect<BatchFacts | null, StoreUnavailable>
    /** Returns the batches that were accepted before the position `before` of the log, newest first. */
    readonly page: (keyId: string, before: number, limit: number) => Effect.Effect<ReadonlyArray<BatchFacts>, StoreUnavailable>
    /**
     * Counts the open batches among the newest 200 batches of the key, and stops at `limit`. A batch is open while an item is
     * pending or not in the log yet.
     */
    readonly countOpen: (keyId: string, limit: number) => Effect.Effect<number, StoreUnavailable>
    /** Counts the tasks of a batch by state. */
    readonly count: (batchId: string) => Effect.Effect<TaskCounts, StoreUnavailable>
    /** Returns true if an item of the batch is pending or not in the log yet. */
    readonly isOpen: (batchId: string) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Returns the results of `limit` items from the item number `first` on, in the order of the upload. Numbers start at 0. `limit` is at most
     * `batchItems.chunk`. Items that are not in the log yet have no result.
     */
    readonly results: (
      batchId: string,
      first: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<BatchResult>, StoreUnavailable>
    /** Records the cancellation of a batch. A repeated call has no effect. */
    readonly cancel: (batch: BatchFacts) => Effect.Effect<void, StoreUnavailable>
    /**
     * Records the completion of batches whose items have all ended, once for each batch. Looks at batches whose ids follow `after`.
     * Returns the API keys of these batches, and the id of the `last` batch that it looked at; null if no batch follows.
     */
    readonly completeNext: (
      after: string
    ) => Effect.Effect<{ readonly keyIds: ReadonlyArray<string>; readonly last: string | null }, StoreUnavailable>
  }
>()("vatproof/domain/pending/BatchStore") {}

/** Accepted batches, each API key its own. */
import { Context, type Effect } from "effect"
import type { BatchFacts, BatchResult, TaskCounts } from "#domain/pending/Batch.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export class BatchStore extends Context.Service<
  BatchStore,
  {
    /** Null if the key has no such batch. */
    readonly find: (keyId: string, batchId: string) => Effect.Effect<BatchFacts | null, StoreUnavailable>
    /** Newest first, those before a position. */
    readonly page: (keyId: string, before: number, limit: number) => Effect.Effect<ReadonlyArray<BatchFacts>, StoreUnavailable>
    /** How many of the key's newest 200 batches are open; `enough` stops the count. */
    readonly countOpen: (keyId: string, enough: number) => Effect.Effect<number, StoreUnavailable>
    readonly count: (batchId: string) => Effect.Effect<TaskCounts, StoreUnavailable>
    /** An item is pending, or not in the log yet. */
    readonly isOpen: (batchId: string) => Effect.Effect<boolean, StoreUnavailable>
    /**
     * Results in input order, from the item `first` on (counted from 0), at most `batchItems.chunk`. Items that are not in the log yet are left out.
     */
    readonly results: (
      batchId: string,
      first: number,
      limit: number
    ) => Effect.Effect<ReadonlyArray<BatchResult>, StoreUnavailable>
    /** Says, once, that the batch is to end. */
    readonly cancel: (batch: BatchFacts) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/pending/BatchStore") {}

/** Reads the updates of API keys: their validations and batches that have ended. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export const UpdateType = Schema.Literals(["validation.final", "validation.expired", "validation.cancelled", "batch.completed"])
export type UpdateType = typeof UpdateType.Type

/** An update has neither names nor references nor custom ids. `id` is the same for every reader; `at` is the time of its event. */
interface Told {
  readonly id: string
  readonly position: number
  readonly at: DateTime.Utc
}

export interface ValidationAnswered extends Told {
  readonly type: "validation.final"
  readonly validationId: string
  readonly vatId: string
  readonly valid: boolean
  readonly source: string
  readonly answeredAt: DateTime.Utc
  readonly receiptId: string | null
}

export interface ValidationEnded extends Told {
  readonly type: "validation.expired" | "validation.cancelled"
  readonly validationId: string
  readonly vatId: string
  readonly reason: string | null
}

export interface BatchEnded extends Told {
  readonly type: "batch.completed"
  readonly batchId: string
  readonly counts: Readonly<Record<"cancelled" | "duplicates" | "expired" | "final" | "malformed", number>>
}

export type Update = BatchEnded | ValidationAnswered | ValidationEnded

/** `from` is the position in the log of the first event that may be in the page. */
export interface UpdatesRequest {
  readonly keyId: string
  readonly from: number
  readonly types: ReadonlyArray<UpdateType>
  readonly limit: number
}

export interface UpdatePage {
  readonly updates: ReadonlyArray<Update>
  readonly hasMore: boolean
}

export class UpdateReader extends Context.Service<
  UpdateReader,
  {
    /**
     * Returns the first updates in the order of the log. An append makes its updates visible in this order, so a reader that has seen a
     * position misses none below it.
     */
    readonly page: (request: UpdatesRequest) => Effect.Effect<UpdatePage, StoreUnavailable>
    /** Returns the position after the newest update of the key, of any type; 0 without an update. */
    readonly head: (keyId: string) => Effect.Effect<number, StoreUnavailable>
  }
>()("vatproof/domain/pending/UpdateReader") {}

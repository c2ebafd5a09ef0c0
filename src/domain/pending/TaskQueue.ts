/** The tasks that wait for an answer, shared by all replicas. */
import { Context, type Duration, type Effect } from "effect"
import type { CancelReason } from "#domain/validation/PendingValidation.ts"
import type { CompanyData } from "#domain/receipts/Confirmation.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * How many tasks of a member state to claim at most. `wakeMs`: also those that wait for its register, if their last attempt is older than this; null:
 * only those that are due.
 */
export interface TaskPlaces {
  readonly memberState: string
  readonly places: number
  readonly wakeMs: number | null
}

/** A task that this replica has; `claim` names the attempt, which is the `attempts`-th. */
export interface ClaimedTask {
  readonly taskId: string
  readonly claim: string
  readonly position: number
  readonly accountId: string
  readonly keyId: string
  /** Null if it is no item of a batch. */
  readonly batchId: string | null
  readonly vatId: string
  readonly memberState: string
  readonly attempts: number
  readonly isExpired: boolean
  /** Of a batch that was cancelled. */
  readonly isCancelled: boolean
}

/** What was accepted. `request` is null once its personal data was erased. */
export interface AcceptedTask {
  readonly accountId: string
  readonly keyId: string
  readonly vatId: string
  readonly request: {
    readonly forceLive: boolean
    readonly requesterVatId: string | null
    readonly company: CompanyData | null
    readonly reference: string | null
  } | null
}

/** How a task ends without an answer. */
export type TaskEnd = "expired" | CancelReason

export class TaskQueue extends Context.Service<
  TaskQueue,
  {
    /** Claims tasks that are due, and some that have expired. */
    readonly claim: (places: ReadonlyArray<TaskPlaces>) => Effect.Effect<ReadonlyArray<ClaimedTask>, StoreUnavailable>
    /** Says that their worker is alive. */
    readonly keep: (tasks: ReadonlyArray<ClaimedTask>) => Effect.Effect<void, StoreUnavailable>
    /** Gives a task back; it is due after `wait`. `failure` is why (`vies:MS_UNAVAILABLE`); null leaves the last one. */
    readonly defer: (task: ClaimedTask, wait: Duration.Duration, failure: string | null) => Effect.Effect<void, StoreUnavailable>
    readonly accepted: (task: ClaimedTask) => Effect.Effect<AcceptedTask, StoreUnavailable>
    /** Ends a task without an answer, unless it has ended. */
    readonly close: (taskId: string, task: AcceptedTask, end: TaskEnd) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/pending/TaskQueue") {}

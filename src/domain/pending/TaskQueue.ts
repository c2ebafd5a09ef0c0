/** The tasks that wait for an answer, shared by all replicas. */
import { Context, type Duration, type Effect } from "effect"
import type { CancelReason } from "#domain/validation/PendingValidation.ts"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * Maximum number of tasks of a member state to claim. With `wakeMs`, also claims tasks that wait for the register if their last attempt is older. With
 * null, claims only due tasks.
 */
export interface TaskPlaces {
  readonly memberState: string
  readonly places: number
  readonly wakeMs: number | null
}

/** A task that this replica has claimed. `claim` identifies the attempt, and `attempts` is its number. */
export interface ClaimedTask {
  readonly taskId: string
  readonly claim: string
  readonly position: number
  readonly accountId: string
  readonly keyId: string
  /** Null for a single validation. */
  readonly batchId: string | null
  readonly vatId: string
  readonly memberState: string
  readonly attempts: number
  readonly isExpired: boolean
  /** Whether the batch was cancelled. */
  readonly isCancelled: boolean
}

/** The accepted request. `request` is null once its personal data is erased. */
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

/** The event that ends a task without an answer. */
export type TaskEnd = "expired" | CancelReason

export class TaskQueue extends Context.Service<
  TaskQueue,
  {
    /** Claims due tasks and some expired tasks. */
    readonly claim: (places: ReadonlyArray<TaskPlaces>) => Effect.Effect<ReadonlyArray<ClaimedTask>, StoreUnavailable>
    /** Extends the leases of the tasks. */
    readonly keep: (tasks: ReadonlyArray<ClaimedTask>) => Effect.Effect<void, StoreUnavailable>
    /** Releases a task, which is due again after `wait`. `failure` is the reason (`vies:MS_UNAVAILABLE`); null keeps the last one. */
    readonly defer: (task: ClaimedTask, wait: Duration.Duration, failure: string | null) => Effect.Effect<void, StoreUnavailable>
    readonly accepted: (task: ClaimedTask) => Effect.Effect<AcceptedTask, StoreUnavailable>
    /** Ends an open task without an answer. */
    readonly close: (taskId: string, task: AcceptedTask, end: TaskEnd) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/pending/TaskQueue") {}

/** The tasks that wait for an answer, shared by all replicas. */
import { Context, type Duration, type Effect } from "effect"
import type { CancelReason } from "#domain/validation/ValidationTask.ts"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * The maximum number of tasks of one member state to claim. `answerMs` is the age of the newest answer about the member state
 * that this replica got; null without an answer. An answer ends an outage of the register, so that all tasks are tried again.
 */
export interface TaskSlots {
  readonly memberState: string
  readonly slots: number
  readonly answerMs: number | null
}

/**
 * A task without an answer is due again after `wait`. `failure` is the reason, such as `vies:MS_UNAVAILABLE`. If it is null, the
 * task keeps its last reason. `isOutage` is true if the register of the member state did not answer: then all replicas together
 * try one task of the member state at a time until it answers, and may try this task earlier.
 */
export interface Deferral {
  readonly wait: Duration.Duration
  readonly failure: string | null
  readonly isOutage: boolean
}

/** A task that this replica has claimed. `claim` identifies the attempt. `attempts` is the number of the attempt, from 1. */
export interface ClaimedTask {
  readonly taskId: string
  readonly claim: string
  readonly position: number
  readonly accountId: string
  readonly keyId: string
  /** The batch of the task; null for a single validation. */
  readonly batchId: string | null
  readonly vatId: string
  readonly memberState: string
  readonly attempts: number
  readonly isExpired: boolean
  /** True if the batch of the task was cancelled. */
  readonly isCancelled: boolean
  /** True if the register of the member state is down and no other task of it may be tried before this one is released. */
  readonly isProbe: boolean
  /** Data of the event that accepted a single validation; null for an item of a batch. */
  readonly accepted: string | null
}

/** An accepted validation. `request` is null after its personal data was erased. */
export interface AcceptedTask {
  readonly accountId: string
  readonly keyId: string
  readonly vatId: string
  readonly request: {
    readonly maxAge: MaxAge
    readonly requesterVatId: string | null
    readonly company: CompanyData | null
    readonly reference: string | null
  } | null
}

/** The reason why a task ends without an answer. */
export type TaskEnd = "expired" | CancelReason

export class TaskQueue extends Context.Service<
  TaskQueue,
  {
    /** Claims due tasks, and expired tasks, which the engine closes. */
    readonly claim: (slots: ReadonlyArray<TaskSlots>) => Effect.Effect<ReadonlyArray<ClaimedTask>, StoreUnavailable>
    /** Extends the leases of the tasks. */
    readonly keep: (tasks: ReadonlyArray<ClaimedTask>) => Effect.Effect<void, StoreUnavailable>
    /** Releases a task until its next attempt. */
    readonly defer: (task: ClaimedTask, deferral: Deferral) => Effect.Effect<void, StoreUnavailable>
    /**
     * Finds up to 1,000 tasks that wait for quota and whose API key has quota again. Makes these tasks due and returns their
     * number. Each call continues after the last API key of the previous call.
     */
    readonly resume: Effect.Effect<number, StoreUnavailable>
    /** Reads the accepted validation of a task. */
    readonly accepted: (task: ClaimedTask) => Effect.Effect<AcceptedTask, StoreUnavailable>
    /** Closes an open task without an answer. */
    readonly close: (taskId: string, task: AcceptedTask, end: TaskEnd) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/pending/TaskQueue") {}

/** Reads accepted validations, each API key its own. */
import { Context, type DateTime, type Effect, type Option } from "effect"
import type { ValidationState } from "#domain/validation/PendingValidation.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { Validation } from "#domain/validation/ValidationQuestion.ts"

/** Why the last attempt brought no answer; `source` is null if none was asked. */
export interface LastFailure {
  readonly source: string | null
  readonly code: string
}

export interface ValidationSummary {
  readonly validationId: string
  readonly vatId: string
  readonly state: ValidationState
  readonly acceptedAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
  readonly attempts: number
  readonly lastFailure: LastFailure | null
  readonly nextAttemptAt: DateTime.Utc
}

/** `requestId` and `requestHash` are those of the acceptance. `validation` is there once it is final, `reason` if it was cancelled. */
export interface ValidationRecord extends ValidationSummary {
  readonly requestId: string
  readonly requestHash: string | null
  readonly validation: Validation | null
  readonly reason: string | null
}

/** Newest first; `before` is the position that a page goes on from, null for the first page. */
export interface ValidationPageRequest {
  readonly keyId: string
  readonly states: ReadonlyArray<ValidationState>
  readonly vatId: string | null
  readonly referenceHash: string | null
  readonly before: number | null
  readonly limit: number
}

/** `next` is the position that the next page goes on from, null on the last page. */
export interface ValidationPage {
  readonly validations: ReadonlyArray<ValidationSummary>
  readonly next: number | null
}

export class ValidationReader extends Context.Service<
  ValidationReader,
  {
    readonly find: (keyId: string, validationId: string) => Effect.Effect<Option.Option<ValidationRecord>, StoreUnavailable>
    /** The same without its answer: reads no event. */
    readonly summary: (keyId: string, validationId: string) => Effect.Effect<Option.Option<ValidationSummary>, StoreUnavailable>
    readonly page: (request: ValidationPageRequest) => Effect.Effect<ValidationPage, StoreUnavailable>
  }
>()("vatproof/domain/pending/ValidationReader") {}

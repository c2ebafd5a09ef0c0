/** Reads the accepted validations of an API key. */
import { Context, type DateTime, type Effect, type Option } from "effect"
import type { ValidationState } from "#domain/validation/ValidationTask.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { Validation } from "#domain/validation/ValidationQuestion.ts"

/** The failure of the last attempt. `source` is null if no source was called. */
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

/** `reference` is the caller's own number; null without one and after its erasure. */
export interface ListedValidation extends ValidationSummary {
  readonly reference: string | null
}

/**
 * `requestId` and `requestHash` belong to the request that submitted the validation. `validation` is set in the state `final`,
 * `reason` in the state `cancelled`.
 */
export interface ValidationRecord extends ListedValidation {
  readonly requestId: string
  readonly requestHash: string | null
  readonly validation: Validation | null
  readonly reason: string | null
}

/** A page of validations, newest first. `before` is the position below which the page starts; null for the first page. */
export interface ValidationPageRequest {
  readonly keyId: string
  readonly states: ReadonlyArray<ValidationState>
  readonly vatId: string | null
  readonly referenceHash: string | null
  readonly before: number | null
  readonly limit: number
}

/** `next` is the `before` of the next page; null on the last page. */
export interface ValidationPage {
  readonly validations: ReadonlyArray<ListedValidation>
  readonly next: number | null
}

export class ValidationReader extends Context.Service<
  ValidationReader,
  {
    readonly find: (keyId: string, validationId: string) => Effect.Effect<Option.Option<ValidationRecord>, StoreUnavailable>
    /** Returns the state of a validation without its answer, so it reads no event. */
    readonly summary: (keyId: string, validationId: string) => Effect.Effect<Option.Option<ValidationSummary>, StoreUnavailable>
    readonly page: (request: ValidationPageRequest) => Effect.Effect<ValidationPage, StoreUnavailable>
  }
>()("vatproof/domain/pending/ValidationReader") {}

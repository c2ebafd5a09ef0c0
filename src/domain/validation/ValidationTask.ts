/** Validations that may be answered later: their events and their computed ids. */
import { type DateTime, Duration, Schema } from "effect"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { Reference } from "#domain/vat/Verdict.ts"

export const ValidationState = Schema.Literals(["pending", "final", "expired", "cancelled"])
export type ValidationState = typeof ValidationState.Type

/** Default and maximum time that a validation stays open. */
export const expiry = { usual: Duration.hours(72), longest: Duration.days(14) }

const ofTask = { account_id: Schema.String, key_id: Schema.String, vat_id: Schema.String }

const Company = Schema.Struct({
  name: Schema.NullOr(Schema.String),
  street: Schema.NullOr(Schema.String),
  zip: Schema.NullOr(Schema.String),
  city: Schema.NullOr(Schema.String)
})

/** The personal data of an accepted validation or item of a batch: the supplied requester, company data and reference. */
export const AcceptedDocument = Schema.Struct({
  requester_vat_id: Schema.optionalKey(Schema.String),
  company: Schema.optionalKey(Company),
  ...Reference.fields
})
export type AcceptedDocument = typeof AcceptedDocument.Type

/**
 * A validation was accepted. The id of the event is the id of the validation. It occurred when the request arrived, which may be before the
 * answer that is stored with it. `request_hash` is a keyed hash of the request; null without an Idempotency-Key. `reference_hash` is a
 * keyed hash of the reference. `max_age` is the maximum age of a stored answer in seconds; absent without a limit. Requester, company and reference are in the personal document.
 */
export const ValidationAccepted = DomainEvent.definePersonal(
  [
    "ValidationAccepted",
    1,
    Schema.Struct({
      ...ofTask,
      force_live: Schema.Boolean,
      max_age: Schema.optionalKey(Schema.Int),
      expires_at: Schema.DateTimeUtcFromString,
      request_hash: Schema.NullOr(Schema.String),
      reference_hash: Schema.NullOr(Schema.String),
      ...DomainEvent.personalDigest
    })
  ],
  AcceptedDocument,
  "answers"
)

/** No source answered before the validation expired. Nothing is known about the VAT ID, and nothing was charged. */
export const ValidationExpired = DomainEvent.define("ValidationExpired", 1, Schema.Struct(ofTask))

/**
 * Why a validation was cancelled: the client requested it, its API key was
 * revoked, its plan no longer allows it, or its personal data was erased.
 */
export const CancelReason = Schema.Literals(["requested", "key_revoked", "not_allowed", "erased"])
export type CancelReason = typeof CancelReason.Type

/** A validation was cancelled before it had an answer. Nothing was charged. */
export const ValidationCancelled = DomainEvent.define(
  "ValidationCancelled",
  1,
  Schema.Struct({ ...ofTask, reason: CancelReason })
)

/**
 * Returns the id of the event that closes a task. Every event that can close the task has this id, so only one of them is stored.
 */
export const closingId = (crypto: Pick<PureCrypto, "sha256Hex">, taskId: string): string => computedId(crypto, "closed", taskId)

/** The data of a new task that the event of its acceptance stores. */
export interface Opening {
  readonly requestedAt: DateTime.Utc
  readonly expiresAt: DateTime.Utc
  /** Keyed hash of the request; null without an Idempotency-Key. */
  readonly requestHash: string | null
  readonly referenceHash: string | null
}

/** The task that a validation answers. `opening` is null if an earlier event accepted the task. */
export interface ValidationTask {
  readonly taskId: string
  readonly closingId: string
  readonly opening: Opening | null
}

/** Returns the request that the personal document of an accepted validation describes. */
export const requestIn = ({ company, reference, requester_vat_id }: AcceptedDocument) => ({
  requesterVatId: requester_vat_id ?? null,
  company: company ?? null,
  reference: reference ?? null
})

/** Returns the personal document of an accepted validation; undefined if the client supplied none of the data. */
export const documentOf = (
  requesterVatId: string | null,
  company: CompanyData | null,
  reference: string | null
): AcceptedDocument | undefined =>
  requesterVatId === null && company === null && reference === null
    ? undefined
    : {
        ...(requesterVatId === null ? {} : { requester_vat_id: requesterVatId }),
        ...(company === null ? {} : { company }),
        ...(reference === null ? {} : { reference })
      }

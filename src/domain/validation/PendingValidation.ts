/** Validations that may be answered later: their facts, their ids, and when they are tried again. */
import { DateTime, Duration, Schema } from "effect"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { Reference } from "#domain/kernel/PersonalData.ts"

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

/** Supplied parameters of the request. */
const AcceptedDocument = Schema.Struct({
  requester_vat_id: Schema.optionalKey(Schema.String),
  company: Schema.optionalKey(Company),
  ...Reference.fields
})
export type AcceptedDocument = typeof AcceptedDocument.Type

/**
 * A validation was accepted. The event's id is the id of the validation. `request_hash` is a keyed hash of a request with an Idempotency-Key.
 * `reference_hash` is a keyed hash of the reference. Requester, company and reference are in the personal document.
 */
export const ValidationAccepted = DomainEvent.definePersonal(
  [
    "ValidationAccepted",
    1,
    Schema.Struct({
      ...ofTask,
      force_live: Schema.Boolean,
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

/** Reason for a cancellation: a request, the end of the key, a plan that no longer allows it, or an erasure of personal data. */
export const CancelReason = Schema.Literals(["requested", "key_revoked", "not_allowed", "erased"])
export type CancelReason = typeof CancelReason.Type

/** A validation ended without an answer. Nothing was charged. */
export const ValidationCancelled = DomainEvent.define(
  "ValidationCancelled",
  1,
  Schema.Struct({ ...ofTask, reason: CancelReason })
)

/** A UUIDv8 (RFC 9562, 5.8) of the SHA-256 of the parts: the same on every replica. */
export const computedId = ({ sha256Hex }: Pick<PureCrypto, "sha256Hex">, ...parts: ReadonlyArray<string>): string => {
  const hex = sha256Hex(parts.join("\0"))
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The id of the event that closes a task. All closing events have the same id, so a task is closed once. */
export const closingId = (crypto: Pick<PureCrypto, "sha256Hex">, taskId: string): string => computedId(crypto, "closed", taskId)

/** A request for an accepted validation. */
export interface Opening {
  readonly expiresAt: DateTime.Utc
  /** Null without an Idempotency-Key. */
  readonly requestHash: string | null
  readonly referenceHash: string | null
}

/** The task that a validation belongs to. `opening` is null if the task was accepted before. */
export interface ValidationTask {
  readonly taskId: string
  readonly closingId: string
  readonly opening: Opening | null
}

/** The personal document of an acceptance. */
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

const waits = [Duration.seconds(30), Duration.minutes(2), Duration.minutes(10)]
const longestWait = Duration.minutes(30)

/** The delay after attempt number `attempts`. `random` (0 to 1) varies it by ±20 %, so that tasks spread out. */
export const retryDelay = (attempts: number, random: number): Duration.Duration =>
  Duration.times(waits[attempts - 1] ?? longestWait, 0.8 + 0.4 * random)

/** The failure of a task whose key has used up its quota. */
export const quotaFailure = "QUOTA"

/** The same delay for a task without quota, which a new month renews. */
export const quotaDelay = (
  attempts: number,
  random: number,
  now: DateTime.Utc,
  periodEnd: DateTime.Utc | null
): Duration.Duration => {
  const delay = retryDelay(attempts, random)
  return periodEnd === null ? delay : Duration.min(delay, DateTime.distance(now, periodEnd))
}

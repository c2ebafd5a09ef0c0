/** The facts of a validation: a verdict was given, or every source failed. Both belong to the caller's stream. */
import { Schema, Struct } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import { Reference } from "#domain/kernel/PersonalData.ts"
import { AnswerFacts, Attempt, Disclosure, SourceName } from "#domain/vat/Verdict.ts"

/** What the caller asked for besides the VAT ID. */
const asked = {
  vat_id: Schema.String,
  force_live: Schema.Boolean,
  requester_vat_id: Schema.NullOr(Schema.String)
}

const verified = Schema.Struct({
  ...asked,
  valid: Schema.Boolean,
  source: SourceName,
  answered_at: Schema.DateTimeUtcFromString,
  served: Schema.Literals(["live", "cache", "stale"]),
  answer: Schema.NullOr(AnswerFacts),
  answer_position: Schema.NullOr(Schema.Int),
  attempts: Schema.Array(Attempt),
  ...DomainEvent.personalDigest
})

/** What a live answer discloses, and the reference. */
const VerifiedDocument = Schema.Struct({ ...Disclosure.mapFields(Struct.map(Schema.optionalKey)).fields, ...Reference.fields })

/**
 * A verdict was given. `served` tells where it came from: `live` carries the answer, and its personal document the names and the evidence;
 * `cache` and `stale` name the position of the event that carries it (`answer_position`), and have a document only for a `reference`. `attempts`
 * are the calls made for this one.
 */
export const VatIdVerified = DomainEvent.definePersonal(["VatIdVerified", 1, verified], VerifiedDocument, "answers")

const failed = Schema.Struct({
  ...asked,
  account_id: Schema.NullOr(Schema.String),
  attempts: Schema.Array(Attempt),
  ...DomainEvent.personalDigest
})

/**
 * No source gave a verdict and no older answer could be served. Nothing is known about the VAT ID. `account_id` is the account of the caller's key.
 * It has a personal document only for a `reference`.
 */
export const VatIdVerificationFailed = DomainEvent.definePersonal(["VatIdVerificationFailed", 1, failed], Reference, "answers")

/** The events of validations: a verdict, or the failure of all sources. They belong to the caller's stream. */
import { Schema, Struct } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import { AnswerFacts, Attempt, Disclosure, SourceName, Reference } from "#domain/vat/Verdict.ts"

const callerParameters = {
  vat_id: Schema.String,
  force_live: Schema.Boolean,
  requester_vat_id: Schema.NullOr(Schema.String)
}

const verified = Schema.Struct({
  ...callerParameters,
  valid: Schema.Boolean,
  source: SourceName,
  answered_at: Schema.DateTimeUtcFromString,
  served: Schema.Literals(["live", "cache", "stale"]),
  answer: Schema.NullOr(AnswerFacts),
  answer_position: Schema.NullOr(Schema.Int),
  attempts: Schema.Array(Attempt),
  ...DomainEvent.personalDigest
})

/** The personal document: names and evidence of a live answer, and the caller's reference. */
const VerifiedDocument = Schema.Struct({ ...Disclosure.mapFields(Struct.map(Schema.optionalKey)).fields, ...Reference.fields })

/**
 * A validation had a verdict. If `served` is `live`, a source answered: the event has the answer, and its personal document has
 * the names and the evidence. If `served` is `cache` or `stale`, an earlier answer was served: `answer_position` is the position
 * of the event with that answer. Such an event has a personal document only if the caller sent a `reference`. `attempts` lists
 * the calls of sources for this validation. `requester_vat_id` is the caller's requester. If VIES got the operator's requester instead, a live
 * answer names it.
 */
export const VatIdVerified = DomainEvent.definePersonal(["VatIdVerified", 1, verified], VerifiedDocument, "answers")

const failed = Schema.Struct({
  ...callerParameters,
  account_id: Schema.NullOr(Schema.String),
  attempts: Schema.Array(Attempt),
  ...DomainEvent.personalDigest
})

/**
 * No source gave a verdict, and no older answer could be served. The event says nothing about the VAT ID. `account_id` is the
 * account of the caller's key. The event has a personal document only if the caller sent a `reference`.
 */
export const VatIdVerificationFailed = DomainEvent.definePersonal(["VatIdVerificationFailed", 1, failed], Reference, "answers")

/** The facts of a validation: a verdict was given, or every source failed. Both belong to the caller's stream. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/DomainEvent.ts"
import { AnswerFacts, Attempt, Disclosure, SourceName } from "#domain/Verdict.ts"

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

/**
 * A verdict was given. `served` tells where it came from: `live` carries the answer, and its personal document the names and the evidence;
 * `cache` and `stale` name the position of the event that carries it (`answer_position`). `attempts` are the calls made for this one.
 */
export const VatIdVerified = DomainEvent.definePersonal(["VatIdVerified", 1, verified], Disclosure, "answers")

/** No source gave a verdict and no older answer could be served. Nothing is known about the VAT ID. `account_id` is the account of the caller's key. */
export const VatIdVerificationFailed = DomainEvent.define(
  "VatIdVerificationFailed",
  1,
  Schema.Struct({ ...asked, account_id: Schema.NullOr(Schema.String), attempts: Schema.Array(Attempt) })
)

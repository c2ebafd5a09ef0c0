/** The facts of a validation: a verdict was given, or every source failed. Both belong to the caller's stream. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/DomainEvent.ts"
import { Answer, Attempt, SourceName } from "#domain/Verdict.ts"

/** What the caller asked for besides the VAT ID. */
const asked = {
  vat_id: Schema.String,
  force_live: Schema.Boolean,
  requester_vat_id: Schema.NullOr(Schema.String)
}

/**
 * A verdict was given. `served` tells where it came from: `live` carries the answer with its evidence; `cache` and `stale` name the
 * position of the event that carries it (`answer_position`) instead of repeating it. `attempts` are the calls made for this one.
 */
export const VatIdVerified = DomainEvent.define(
  "VatIdVerified",
  1,
  Schema.Struct({
    ...asked,
    valid: Schema.Boolean,
    source: SourceName,
    answered_at: Schema.DateTimeUtcFromString,
    served: Schema.Literals(["live", "cache", "stale"]),
    answer: Schema.NullOr(Answer),
    answer_position: Schema.NullOr(Schema.Int),
    attempts: Schema.Array(Attempt)
  })
)

/** No source gave a verdict and no older answer could be served. Nothing is known about the VAT ID. */
export const VatIdVerificationFailed = DomainEvent.define(
  "VatIdVerificationFailed",
  1,
  Schema.Struct({ ...asked, attempts: Schema.Array(Attempt) })
)

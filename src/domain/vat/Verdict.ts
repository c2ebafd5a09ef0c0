/** The answers and failures of a source. Only an answer decides `valid`: a failure is never "invalid". */
import { Schema } from "effect"

/** The official sources: the EU's VIES and the German BZSt. */
export const SourceName = Schema.Literals(["vies", "bzst"])
export type SourceName = typeof SourceName.Type

/** The exact exchange of an answer, for the auditor. `response` holds the body's bytes as UTF-8 text. */
export const Evidence = Schema.Struct({
  request: Schema.String,
  response: Schema.String,
  response_sha256: Schema.String,
  http_status: Schema.Int
})
export type Evidence = typeof Evidence.Type

/**
 * A source's verdict on one VAT ID. `code` is the source's own code (`evatr-0000`; VIES has none for a verdict). `answered_at` is
 * the source's own time (ISO 8601, UTC); names and addresses are null if the member state does not disclose them. `valid_from`
 * and `valid_until` (YYYY-MM-DD) come with BZSt's evatr-2002 and evatr-2006.
 */
export const Answer = Schema.Struct({
  source: SourceName,
  valid: Schema.Boolean,
  code: Schema.NullOr(Schema.String),
  answered_at: Schema.DateTimeUtcFromString,
  company_name: Schema.NullOr(Schema.String),
  company_address: Schema.NullOr(Schema.String),
  consultation_number: Schema.NullOr(Schema.String),
  valid_from: Schema.NullOr(Schema.String),
  valid_until: Schema.NullOr(Schema.String),
  evidence: Evidence
})
export type Answer = typeof Answer.Type

const { company_address, company_name, evidence, ...facts } = Answer.fields

/** The part of an answer in the log. */
export const AnswerFacts = Schema.Struct(facts)

/** The part of an answer that may contain personal data: it is stored in a document beside the log. */
export const Disclosure = Schema.Struct({ company_name, company_address, evidence })

/** Why a source gave no verdict. */
export const FailureReason = Schema.Literals([
  "unreachable", // the connection failed or broke
  "timeout",
  "malformed", // the answer violates the source's contract, or is too large
  "unavailable", // the source reports its own outage
  "member_state_unavailable", // the register of the member state is down
  "throttled",
  "blocked", // our address, or this VAT ID, is blocked
  "refused", // this requester may not ask this (evatr-0006)
  "requester_rejected",
  "input_rejected",
  "circuit_open", // not asked: too many recent failures
  "saturated", // not asked: too many calls in flight
  "over_budget" // not asked: the operator's budget of the day is spent
])
export type FailureReason = typeof FailureReason.Type

/**
 * One attempt without a verdict.
 *
 * `scope` names the unhealthy part: the whole source, the member state's register behind it, or only this question. `retry`: `soon`
 * may be retried within the request, `later` is transient but must not be retried at once, `never` is final. `code` is the
 * source's own code, otherwise the HTTP status (`HTTP 502`) or the network error (`ECONNREFUSED`), if any. `retry_after_s` is the
 * pause that the source requested, if any.
 */
export class SourceFailure extends Schema.TaggedError<SourceFailure>()("SourceFailure", {
  source: SourceName,
  reason: FailureReason,
  code: Schema.NullOr(Schema.String),
  scope: Schema.Literals(["source", "member_state", "question"]),
  retry: Schema.Literals(["soon", "later", "never"]),
  retry_after_s: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    return `${this.source} gave no verdict: ${this.reason}${this.code === null ? "" : ` (${this.code})`}`
  }
}

/** The code of a question that was not asked because the budget of the day is spent. */
export const overBudget = "BUDGET"

/** One call to a source, as stored in the log: `outcome` is `answered` or the reason for the failure. */
export const Attempt = Schema.Struct({
  source: SourceName,
  outcome: Schema.Union([Schema.Literal("answered"), FailureReason]),
  code: Schema.NullOr(Schema.String),
  started_at: Schema.DateTimeUtcFromString,
  duration_ms: Schema.Int
})
export type Attempt = typeof Attempt.Type

/** The answers and failures of sources. Only an answer decides whether a VAT ID is valid: a failure is never "invalid". */
import { Schema } from "effect"

/** The official sources: the EU's VIES and the German BZSt. */
export const SourceName = Schema.Literals(["vies", "bzst"])
export type SourceName = typeof SourceName.Type

/** The exact exchange with a source, kept for auditors. `response` has the bytes of the body as UTF-8 text. */
export const Evidence = Schema.Struct({
  request: Schema.String,
  response: Schema.String,
  response_sha256: Schema.String,
  http_status: Schema.Int
})
export type Evidence = typeof Evidence.Type

/**
 * A source's verdict on one VAT ID. `code` is the status of the BZSt (`evatr-0000`); null for VIES. `answered_at` is the time by the
 * source's clock. Name and address are null if the member state does not disclose them. `valid_from` and `valid_until` (YYYY-MM-DD) come
 * with the BZSt's statuses evatr-2002 and evatr-2006.
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

/** The part of an answer that its event stores. */
export const AnswerFacts = Schema.Struct(facts)

/** The part of an answer that may contain personal data. It is stored in a personal document beside the event. */
export const Disclosure = Schema.Struct({ company_name, company_address, evidence })

/** Why a source gave no verdict. */
export const FailureReason = Schema.Literals([
  "unreachable", // the connection failed or broke
  "timeout", // no complete answer in time
  "malformed", // the answer violates the source's contract, or is too large
  "unavailable", // the source reports its own outage
  "member_state_unavailable", // the register of the member state is unavailable
  "throttled", // the source rejects the call because of too many calls
  "blocked", // the source blocks the address of the service, or this VAT ID
  "refused", // the requester may not ask about this VAT ID (evatr-0006)
  "requester_rejected", // the source rejects the VAT ID of the requester
  "input_rejected", // the source rejects the VAT ID or the company data
  "circuit_open", // not called: the circuit breaker is open
  "saturated", // not called: too many calls are in flight
  "over_budget" // not called: the operator's budget of the day is spent
])
export type FailureReason = typeof FailureReason.Type

/**
 * A call of a source failed without a verdict. `scope` says what failed: the whole source, its register of the member state, or
 * only this question. `retry` is `soon` if the same request can repeat the call, `later` if the failure is transient but the call
 * must not be repeated at once, and `never` if the failure is final. `code` is the code of the source, otherwise the HTTP status
 * (`HTTP 502`) or the network error (`ECONNREFUSED`), if any. `retry_after_s` is the pause in seconds that the source requested,
 * if any.
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

/** The `code` of a failure with the reason `over_budget`. */
export const overBudget = "BUDGET"

/** A call of a source, as events store it. `outcome` is `answered` or the reason for the failure. */
export const Attempt = Schema.Struct({
  source: SourceName,
  outcome: Schema.Union([Schema.Literal("answered"), FailureReason]),
  code: Schema.NullOr(Schema.String),
  started_at: Schema.DateTimeUtcFromString,
  duration_ms: Schema.Int
})
export type Attempt = typeof Attempt.Type

/** The caller's own invoice or order number (rule 35), as documents store it: absent if none was supplied. */
export const Reference = Schema.Struct({ reference: Schema.optionalKey(Schema.String) })

/** Returns the part of a personal document that has the reference; undefined without a reference. */
export const referenceIn = (reference: string | null) => (reference === null ? undefined : { reference })

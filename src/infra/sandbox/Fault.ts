/** The faults of a simulated source, for magic numbers and for scripts of users. */
import { Option, Result, Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { SourceName } from "#domain/vat/Verdict.ts"
import { parse } from "#domain/vat/VatId.ts"

/** Ways to break an exchange between a client and the source, in addition to the error codes of the source. */
export const Breakage = Schema.Literals([
  "hang", // reads the request, never sends anything
  "reset", // resets the connection before the first byte
  "reset_mid_body", // sends half of the promised body, then resets
  "short_body", // sends half of the body that Content-Length promises, then closes properly
  "truncated_json", // sends a complete HTTP response whose JSON is cut in the middle
  "html", // sends an HTML page with status 200
  "empty", // sends status 200, application/json, no body
  "wrong_types", // sends the right keys with values of other JSON types
  "huge", // sends 100 MB of JSON
  "drip" // sends one byte every 200 ms
])
export type Breakage = typeof Breakage.Type

/** The behaviour of a source for one call. Without any field, it answers immediately from the register. */
export interface Behaviour {
  /** A verdict or error of the source itself: `VALID`, `INVALID` or an error code for VIES, an `evatr-…` status for BZSt. */
  readonly code?: string | undefined
  readonly breakage?: Breakage | undefined
  /** The status of a plain HTTP error, as a proxy sends it. */
  readonly httpStatus?: number | undefined
  readonly retryAfterSeconds?: number | undefined
  /** Delay before anything is sent. */
  readonly latencyMs?: number | undefined
  /** The behaviour applies to this number of first calls for a VAT ID. The source answers later calls normally. */
  readonly firstCalls?: number | undefined
}

const evatrStatus = /^evatr-\d{4}$/u

/** Any code of VIES or the BZSt, also an undocumented one, because clients must tolerate undocumented codes. */
const Code = Schema.String.check(Schema.isPattern(/^(?:evatr-\d{4}|[A-Z][A-Z0-9_-]{1,63})$/u))

const VatIdText = Schema.String.check(
  Schema.makeFilter((text) => Result.match(parse(text), { onFailure: (refused) => refused.message, onSuccess: () => true }))
)

const Fields = Schema.Struct({
  kind: Schema.Literals(["code", "http", "slow", ...Breakage.literals]),
  source: Schema.optionalKey(SourceName),
  member_state: Schema.optionalKey(Schema.Literals([...memberStates.keys()])),
  vat_id: Schema.optionalKey(VatIdText),
  on: Schema.optionalKey(Schema.Literals(["checks", "probes", "all"])),
  code: Schema.optionalKey(Code),
  http_status: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 400, maximum: 599 }))),
  retry_after_s: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 86_400 }))),
  latency_ms: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600_000 }))),
  count: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))),
  probability: Schema.optionalKey(Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 1 })))
})

const misfit = (fault: typeof Fields.Type): string | undefined => {
  if ((fault.kind === "code") !== (fault.code !== undefined)) return 'kind "code" requires a code, and no other kind takes one'
  if ((fault.kind === "http") !== (fault.http_status !== undefined)) {
    return 'kind "http" requires an http_status, and no other kind takes one'
  }
  if (fault.kind === "slow" && fault.latency_ms === undefined) return 'kind "slow" requires a latency_ms'
  if (fault.retry_after_s !== undefined && fault.kind !== "http") return 'only kind "http" takes a retry_after_s'
  if (fault.code !== undefined && fault.source !== undefined && (fault.source === "bzst") !== evatrStatus.test(fault.code)) {
    return `${fault.code} is not a code of the source ${fault.source}`
  }
  if (fault.on !== undefined && fault.on !== "checks" && (fault.member_state ?? fault.vat_id) !== undefined) {
    return "a fault with a member_state or a vat_id concerns checks only: omit `on`"
  }
  return undefined
}

/**
 * One fault that a user scripts with `/sandbox/faults`. A fault without `member_state` and `vat_id` applies to all VAT IDs.
 *
 * `latency_ms` is the delay before the fault. `count` is the number of calls with the fault. `probability` (0 to 1) selects calls
 * at random. `on` selects validations (`checks`), status queries (`probes`) or both (`all`). Without `on`, a fault with a
 * `member_state`, `vat_id` or `count` applies to checks, so that probes do not use up the count. Any other fault without `on`
 * applies to all calls, so that probes show the outage.
 */
export const Fault = Fields.check(Schema.makeFilter((fault) => misfit(fault) ?? true))
export type Fault = typeof Fault.Type

/**
 * Returns the only source that a fault affects: `fault.source` if it is set, otherwise the source that defines `fault.code`. None if the
 * fault has neither field and so affects both sources.
 */
export const sourceOf = (fault: Fault): Option.Option<SourceName> =>
  fault.source !== undefined
    ? Option.some(fault.source)
    : Option.map(Option.fromUndefinedOr(fault.code), (code) => (evatrStatus.test(code) ? "bzst" : "vies"))

/** Returns the calls that a fault concerns: its `on`, or the default. */
export const concerns = (fault: Fault): "checks" | "probes" | "all" =>
  fault.on ?? ((fault.member_state ?? fault.vat_id ?? fault.count) === undefined ? "all" : "checks")

const isBreakage = Schema.is(Breakage)

/** Returns the behaviour that a scripted fault requests. */
export const behaviourOf = (fault: Fault): Behaviour => ({
  code: fault.code,
  breakage: isBreakage(fault.kind) ? fault.kind : undefined,
  httpStatus: fault.http_status,
  retryAfterSeconds: fault.retry_after_s,
  latencyMs: fault.latency_ms
})

/** What a simulated source can do instead of answering properly, as magic numbers use it and as users script it. */
import { Option, Result, Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { SourceName } from "#domain/vat/Verdict.ts"
import { parse } from "#domain/vat/VatId.ts"

/** Ways to break an exchange below the level of the protocol. */
export const Breakage = Schema.Literals([
  "hang", // the request is read, nothing is ever sent
  "reset", // the connection is reset before the first byte
  "reset_mid_body", // half of the promised body, then a reset
  "short_body", // half of the body that Content-Length promises, then an orderly end
  "truncated_json", // a complete HTTP answer whose JSON stops half way
  "html", // an HTML page with status 200
  "empty", // status 200, application/json, no body
  "wrong_types", // the right keys, but every value has another JSON type
  "huge", // 100 MB of JSON
  "drip" // one byte every 200 ms
])
export type Breakage = typeof Breakage.Type

/** A source's conduct on one call; nothing set means: answer what the register says, at once. */
export interface Conduct {
  /** A verdict or error of the source itself: `VALID`, `INVALID` or an error code at VIES, an `evatr-…` status at BZSt. */
  readonly code?: string | undefined
  readonly breakage?: Breakage | undefined
  /** A bare HTTP error as a proxy sends it, with `Retry-After` if set. */
  readonly httpStatus?: number | undefined
  readonly retryAfterSeconds?: number | undefined
  /** Waits before anything is sent. */
  readonly latencyMs?: number | undefined
  /** Only the first so many calls for the VAT ID go this way; later ones are answered properly. */
  readonly firstCalls?: number | undefined
}

const evatrStatus = /^evatr-\d{4}$/u

/** Any code of either source, also one that no document knows: clients must survive those. */
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
  if ((fault.kind === "code") !== (fault.code !== undefined)) return 'kind "code" needs a code, and no other kind takes one'
  if ((fault.kind === "http") !== (fault.http_status !== undefined)) {
    return 'kind "http" needs an http_status, and no other kind takes one'
  }
  if (fault.kind === "slow" && fault.latency_ms === undefined) return 'kind "slow" needs a latency_ms'
  if (fault.retry_after_s !== undefined && fault.kind !== "http") return 'retry_after_s goes with kind "http" only'
  if (fault.code !== undefined && fault.source !== undefined && (fault.source === "bzst") !== evatrStatus.test(fault.code)) {
    return `${fault.code} is not a code of the source ${fault.source}`
  }
  if (fault.on !== undefined && fault.on !== "checks" && (fault.member_state ?? fault.vat_id) !== undefined) {
    return "only checks ask for a member state or a VAT ID: leave `on` out"
  }
  return undefined
}

/**
 * One scripted fault, as `/sandbox/faults` takes it. A selector that is left out matches everything.
 *
 * `latency_ms` waits before the fault shows; `count` ends it after so many calls; `probability` (0 to 1) lets calls through by chance.
 * `on`: validations (`checks`), status queries (`probes`) or both. It defaults to `all` for a fault without selector and count, so
 * that an outage shows in the probes too, and to `checks` otherwise, so that a background probe does not use the count up.
 */
export const Fault = Fields.check(Schema.makeFilter((fault) => misfit(fault) ?? true))
export type Fault = typeof Fault.Type

/** The source a fault is limited to: the named one, or the only one that knows its code. */
export const sourceOf = (fault: Fault): Option.Option<SourceName> =>
  fault.source !== undefined
    ? Option.some(fault.source)
    : Option.map(Option.fromUndefinedOr(fault.code), (code) => (evatrStatus.test(code) ? "bzst" : "vies"))

/** Which calls a fault concerns, its default filled in. */
export const concerns = (fault: Fault): "checks" | "probes" | "all" =>
  fault.on ?? ((fault.member_state ?? fault.vat_id ?? fault.count) === undefined ? "all" : "checks")

const isBreakage = Schema.is(Breakage)

/** The conduct that a scripted fault asks for. */
export const conductOf = (fault: Fault): Conduct => ({
  code: fault.code,
  breakage: isBreakage(fault.kind) ? fault.kind : undefined,
  httpStatus: fault.http_status,
  retryAfterSeconds: fault.retry_after_s,
  latencyMs: fault.latency_ms
})

/**
 * The magic numbers: the last six digits of a VAT ID control the sandbox, in every member state.
 *
 * - `99` + the digits of an evatr status (`992001`): BZSt answers with that status, VIES with the corresponding verdict.
 * - `98` + the digits of an evatr status (`982001`): BZSt answers with that status, VIES is unavailable.
 * - `999` + one of the Commission's own test numbers (`999301`): VIES answers as its test service does.
 * - `9997xx`: fault `xx` at VIES only; `9998xx`: at BZSt only; `9999xx`: at both.
 * - one digit repeated (`11111111`): invalid, not assigned. All other well-formed numbers: valid.
 */
import type { VatId } from "#domain/vat/VatId.ts"
import type { Behaviour } from "#infra/sandbox/Fault.ts"
import type { Specimen } from "#infra/sandbox/Register.ts"
import { statusMessages } from "#infra/sandbox/StatusMessages.ts"

/**
 * The behaviour of both sources for one VAT ID. `disclosed` limits the data that the member state returns; absent means all data.
 */
export interface Magic {
  readonly meaning: string
  readonly vies: Behaviour
  readonly bzst: Behaviour
  readonly disclosed?: "name" | "nothing"
  readonly specimen?: Specimen
}

/** The Commission's test numbers and the answers of VIES' test service (VIES FAQ, read 2026-11). */
export const viesTestNumbers: ReadonlyMap<string, string> = new Map([
  ["100", "VALID"],
  ["200", "INVALID"],
  ["201", "INVALID_INPUT"],
  ["202", "INVALID_REQUESTER_INFO"],
  ["300", "SERVICE_UNAVAILABLE"],
  ["301", "MS_UNAVAILABLE"],
  ["302", "TIMEOUT"],
  ["400", "VAT_BLOCKED"],
  ["401", "IP_BLOCKED"],
  ["500", "GLOBAL_MAX_CONCURRENT_REQ"],
  ["501", "GLOBAL_MAX_CONCURRENT_REQ_TIME"],
  ["600", "MS_MAX_CONCURRENT_REQ"],
  ["601", "MS_MAX_CONCURRENT_REQ_TIME"]
])

const valid: Pick<Magic, "vies" | "bzst"> = { vies: { code: "VALID" }, bzst: {} }
const invalid: Pick<Magic, "vies" | "bzst"> = { vies: { code: "INVALID" }, bzst: { code: "evatr-2001" } }

const companies: ReadonlyArray<readonly [string, Magic]> = [
  ["999110", { meaning: "valid, name and address not disclosed", ...valid, disclosed: "nothing" }],
  ["999111", { meaning: "valid, name disclosed, address not", ...valid, disclosed: "name" }],
  ["999120", { meaning: "valid, long German name with umlauts", ...valid, specimen: "umlauts" }],
  ["999121", { meaning: "valid, Greek name", ...valid, specimen: "greek" }],
  ["999122", { meaning: "valid, name and street of about 300 characters", ...valid, specimen: "veryLong" }],
  ["999123", { meaning: "valid, name full of characters special to HTML, CSV and shells", ...valid, specimen: "markup" }]
]

const meaningOfTestNumber = (code: string): string => {
  if (code === "VALID") return "valid, like every number that is not a magic number"
  return code === "INVALID_REQUESTER_INFO"
    ? "VIES rejects any requester (INVALID_REQUESTER_INFO); without a requester it returns a verdict"
    : `VIES answers ${code}`
}

const testNumbers: ReadonlyArray<readonly [string, Magic]> = [...viesTestNumbers].map(([number, code]) => [
  `999${number}`,
  code === "INVALID"
    ? { meaning: "invalid at both sources", ...invalid }
    : { meaning: meaningOfTestNumber(code), vies: { code }, bzst: {} }
])

const notValid: ReadonlySet<string> = new Set(["evatr-2001", "evatr-2002", "evatr-2006"])

const statuses: ReadonlyArray<readonly [string, Magic]> = statusMessages.flatMap(({ status }) => {
  const digits = status.slice("evatr-".length)
  const verdict = notValid.has(status) ? "INVALID" : "VALID"
  return [
    [`99${digits}`, { meaning: `BZSt answers ${status}, VIES ${verdict}`, vies: { code: verdict }, bzst: { code: status } }],
    [
      `98${digits}`,
      { meaning: `BZSt answers ${status}, VIES is unavailable`, vies: { code: "SERVICE_UNAVAILABLE" }, bzst: { code: status } }
    ]
  ] as const
})

/**
 * Returns the faults of the magic numbers `9997xx`, `9998xx` and `9999xx`: the digits `xx`, the meaning, and the behaviour of the
 * source. `own` is the source's code for an outage. `undocumented` is a code that the source's documentation does not list.
 */
const faults = (own: string, undocumented: string): ReadonlyArray<readonly [string, string, Behaviour]> => [
  ["00", "says that it is unavailable", { code: own }],
  ["01", "answers after 2 s", { latencyMs: 2_000 }],
  ["02", "answers after 20 s", { latencyMs: 20_000 }],
  ["03", "never answers", { breakage: "hang" }],
  ["04", "resets the connection before answering", { breakage: "reset" }],
  ["05", "resets the connection in the middle of the body", { breakage: "reset_mid_body" }],
  ["06", "sends truncated JSON", { breakage: "truncated_json" }],
  ["07", "sends an HTML page with status 200", { breakage: "html" }],
  ["08", "sends an empty body", { breakage: "empty" }],
  ["09", "sends JSON with wrong types", { breakage: "wrong_types" }],
  ["10", "sends a body of 100 MB", { breakage: "huge" }],
  ["11", "sends one byte every 200 ms", { breakage: "drip" }],
  ["12", "sends fewer bytes than Content-Length states", { breakage: "short_body" }],
  ["13", "answers with an undocumented code", { code: undocumented }],
  ["29", "answers HTTP 429 with Retry-After: 2", { httpStatus: 429, retryAfterSeconds: 2 }],
  ["31", "is unavailable for 1 call, then answers", { code: own, firstCalls: 1 }],
  ["32", "is unavailable for 2 calls, then answers", { code: own, firstCalls: 2 }],
  ["33", "is unavailable for 3 calls, then answers", { code: own, firstCalls: 3 }],
  ["34", "resets the connection once, then answers", { breakage: "reset", firstCalls: 1 }],
  ["50", "answers HTTP 500", { httpStatus: 500 }],
  ["52", "answers HTTP 502", { httpStatus: 502 }],
  ["53", "answers HTTP 503 with Retry-After: 2", { httpStatus: 503, retryAfterSeconds: 2 }],
  ["54", "answers HTTP 504", { httpStatus: 504 }]
]

const atBzst = new Map(faults("evatr-0011", "evatr-9999").map(([digits, , behaviour]) => [digits, behaviour]))

const brokenExchanges: ReadonlyArray<readonly [string, Magic]> = faults("SERVICE_UNAVAILABLE", "NEVER_HEARD_OF").flatMap(
  ([digits, meaning, vies]) => {
    const bzst = atBzst.get(digits) ?? {}
    return [
      [`9997${digits}`, { meaning: `VIES ${meaning}`, vies, bzst: {} }],
      [`9998${digits}`, { meaning: `BZSt ${meaning}`, vies: {}, bzst }],
      [`9999${digits}`, { meaning: `VIES and BZSt: each ${meaning}`, vies, bzst }]
    ] as const
  }
)

/** All magic numbers (endings of VAT IDs) with their effect, in the order of the documentation. */
export const magicNumbers: ReadonlyMap<string, Magic> = new Map([...testNumbers, ...companies, ...statuses, ...brokenExchanges])

const notAssigned: Magic = { meaning: "invalid: one digit repeated", ...invalid }
const assigned: Magic = { meaning: "valid", vies: {}, bzst: {} }

/** Returns how the simulated sources behave for a VAT ID, by its last six digits. A number of one repeated digit is not assigned. */
export const magicOf = (vatId: VatId): Magic => {
  const digits = digitsOf(vatId)
  return /^(\d)\1*$/u.test(digits) ? notAssigned : (magicNumbers.get(digits.slice(-6)) ?? assigned)
}

/**
 * Returns the digits of a VAT ID whose ending can be a magic number. Ignores the last three characters of a Dutch VAT ID, which
 * are B and two digits.
 */
const digitsOf = (vatId: VatId): string =>
  (vatId.memberState.prefix === "NL" ? vatId.number.replace(/B\d\d$/u, "") : vatId.number).replace(/\D/gu, "")

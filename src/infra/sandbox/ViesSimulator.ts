/**
 * The simulated VIES: the answers of the Commission's REST interface to a check (OpenAPI 1.0.0 and recorded answers, read
 * 2026-11).
 */
import { DateTime, Option, Result, Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import { magicOf } from "#infra/sandbox/MagicNumbers.ts"
import { addressOf, companyOf, sameText, type Company } from "#infra/sandbox/Register.ts"
import type { Settings } from "#infra/sandbox/Settings.ts"
import { json, type Question, type Reply, type Stamp } from "#infra/sandbox/Simulator.ts"

const text = Schema.optionalKey(Schema.NullOr(Schema.String))

const CheckVatRequest = Schema.fromJsonString(
  Schema.Struct({
    countryCode: text,
    vatNumber: text,
    requesterMemberStateCode: text,
    requesterNumber: text,
    traderName: text,
    traderStreet: text,
    traderPostalCode: text,
    traderCity: text,
    traderCompanyType: text
  })
)
type CheckVatRequest = typeof CheckVatRequest.Type

const decode = Schema.decodeUnknownOption(CheckVatRequest)

/** The text that VIES returns in place of data that the member state does not disclose. */
const undisclosed = "---"

/** Member states that never disclose names and addresses. */
const undisclosing: ReadonlySet<string> = new Set(["DE", "ES"])

const parts = ["Name", "Street", "PostalCode", "City", "CompanyType"] as const
type Part = (typeof parts)[number]

/** The HTTP statuses of some errors. All other errors come with 200, as recorded answers show. */
const httpStatuses: ReadonlyMap<string, number> = new Map([
  ["VOW-ERR-1", 500],
  ["VOW-ERR-11", 400],
  ["VOW-ERR-2600", 400]
])

const messages: ReadonlyMap<string, string> = new Map([
  ["VOW-ERR-1", "An unexpected error occurred. Please retry later or contact the support team."],
  ["VOW-ERR-11", "A mandatory field is missing"]
])

/** Returns an error in VIES' form. Most errors have HTTP 200 and no message. */
export const errorReply = (code: string): Reply => {
  const message = messages.get(code)
  return json(httpStatuses.get(code) ?? 200, code, {
    actionSucceed: false,
    errorWrappers: [message === undefined ? { error: code } : { error: code, message }]
  })
}

/** Parses the body of `POST /check-vat-number`. */
export const readCheck = (body: string): Question =>
  Option.match(decode(body), {
    onNone: () => refused("VOW-ERR-1", null, undefined),
    onSome: (request) => {
      const { countryCode, vatNumber } = request
      if (!countryCode || !vatNumber) return refused("VOW-ERR-11", null, undefined)
      const target = `${countryCode}${vatNumber}`
      return Option.match(exactly(countryCode, vatNumber), {
        onNone: () => refused("INVALID_INPUT", target, undefined),
        onSome: (vatId) => check(vatId, request)
      })
    }
  })

const check = (vatId: VatId, request: CheckVatRequest): Question => {
  const sent = Boolean(request.requesterMemberStateCode) || Boolean(request.requesterNumber)
  const requester = exactly(request.requesterMemberStateCode ?? "", request.requesterNumber ?? "")
  if (sent && !Option.exists(requester, mayAsk)) return refused("INVALID_REQUESTER_INFO", vatId.value, vatId)
  return {
    target: vatId.value,
    requester: Option.getOrNull(Option.map(requester, ({ value }) => value)),
    vatId,
    isAccepted: true,
    answer: (stamp, code) =>
      code === undefined || code === "VALID" || code === "INVALID"
        ? verdict(vatId, request, code !== "INVALID", sent, stamp)
        : // The requester error needs a requester, so a retry without requester gets a verdict.
          code === "INVALID_REQUESTER_INFO" && !sent
          ? verdict(vatId, request, true, sent, stamp)
          : errorReply(code)
  }
}

const refused = (error: string, target: string | null, vatId: VatId | undefined): Question => ({
  target,
  requester: null,
  vatId,
  isAccepted: false,
  answer: (_, code) => errorReply(code === undefined || code === "VALID" || code === "INVALID" ? error : code)
})

/** Parses a VAT ID in the only form that VIES accepts: the number without prefix, in upper case and without separators. */
const exactly = (prefix: string, number: string): Option.Option<VatId> =>
  Option.filter(
    Result.getSuccess(parse(`${prefix}${number}`)),
    (vatId) => vatId.memberState.prefix === prefix && vatId.number === number
  )

const mayAsk = (requester: VatId): boolean => {
  const { code } = magicOf(requester).vies
  return code !== "INVALID" && code !== "INVALID_REQUESTER_INFO"
}

const verdict = (vatId: VatId, request: CheckVatRequest, valid: boolean, withRequester: boolean, stamp: Stamp): Reply => {
  const { disclosed, specimen } = magicOf(vatId)
  const company = companyOf(vatId, specimen)
  const state = vatId.memberState.prefix
  const silent = !valid || undisclosing.has(state) || disclosed === "nothing"
  return json(200, valid ? "VALID" : "INVALID", {
    countryCode: state,
    vatNumber: vatId.number,
    requestDate: isoOf(stamp),
    valid,
    requestIdentifier: valid && withRequester ? stamp.consultationNumber : "",
    name: silent ? undisclosed : company.name,
    address: silent || disclosed === "name" ? undisclosed : addressOf(company),
    ...traderKeys(state, request, valid ? company : undefined)
  })
}

/**
 * Returns the fields about the trader that recorded answers contain. For each part, such as the name, there are two fields:
 * `traderName` and the result of its comparison, `traderNameMatch`. Germany: only these two. Spain: all comparisons, and of the
 * other fields only those in the request, or all of them if the request has none. Other member states: all fields.
 */
const traderKeys = (state: string, request: CheckVatRequest, company: Company | undefined): object => {
  if (state === "DE") return { traderName: request.traderName || undisclosed, traderNameMatch: "NOT_PROCESSED" }
  const sent = parts.map((part) => [part, request[`trader${part}`] || undefined] as const)
  return Object.fromEntries([
    ...sent.flatMap(([part, value]) =>
      value === undefined && state === "ES" && sent.some(([, other]) => other !== undefined)
        ? []
        : [[`trader${part}`, value ?? undisclosed]]
    ),
    ...sent.map(([part, value]) => [`trader${part}Match`, matchOf(part, value, company)])
  ])
}

const matchOf = (part: Part, value: string | undefined, company: Company | undefined): string => {
  const registered = company === undefined ? undefined : registeredPart(part, company)
  if (value === undefined || registered === undefined) return "NOT_PROCESSED"
  return sameText(value, registered) ? "VALID" : "INVALID"
}

const registeredPart = (part: Part, company: Company): string | undefined => {
  if (part === "Name") return company.name
  if (part === "Street") return company.street
  if (part === "PostalCode") return company.postalCode
  return part === "City" ? company.city : undefined
}

const isoOf = (stamp: Stamp): string => DateTime.formatIso(DateTime.makeUnsafe(Number(stamp.nanos / 1_000_000n)))

/** Answers `GET /check-status`. */
export const answerStatus = (settings: Settings): Reply =>
  json(200, "STATUS", {
    vow: { available: settings.vies_available },
    countries: [...memberStates.keys()].map((countryCode) => ({
      countryCode,
      availability: settings.vies_unavailable_member_states.includes(countryCode) ? "Unavailable" : "Available"
    }))
  })

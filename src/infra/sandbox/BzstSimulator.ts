/**
 * The simulated BZSt eVatR: the answers of the authority's REST interface (OpenAPI v1.2.3.14.813 and recorded answers, read
 * 2026-11).
 */
import { DateTime, Option, Result, Schema } from "effect"
import { isMember, memberStates } from "#domain/vat/MemberStates.ts"
import { isGerman, parse, type VatId } from "#domain/vat/VatId.ts"
import { magicOf } from "#infra/sandbox/MagicNumbers.ts"
import { companyOf, sameText } from "#infra/sandbox/Register.ts"
import type { Settings } from "#infra/sandbox/Settings.ts"
import { json, type Question, type Reply, type Stamp } from "#infra/sandbox/Simulator.ts"
import { httpStatusOf, statusMessages } from "#infra/sandbox/StatusMessages.ts"

const text = Schema.optionalKey(Schema.NullOr(Schema.String))

const Bestaetigungsabfrage = Schema.fromJsonString(
  Schema.Struct({ anfragendeUstid: text, angefragteUstid: text, firmenname: text, strasse: text, plz: text, ort: text })
)
type Bestaetigungsabfrage = typeof Bestaetigungsabfrage.Type

const decode = Schema.decodeUnknownOption(Bestaetigungsabfrage)

/** Parses the body of `POST /v1/abfrage`. */
export const readQuery = (body: string, settings: Settings): Question =>
  Option.match(decode(body), {
    onNone: () => refused("evatr-0007", null, null, undefined),
    onSome: (query) => {
      const { anfragendeUstid: requester, angefragteUstid: target } = query
      if (!requester || !target) return refused("evatr-0002", target ?? null, requester ?? null, undefined)
      const vatId = Option.getOrUndefined(exactly(target))
      const status = refusalOf(requester, target, settings)
      return status === undefined && vatId !== undefined
        ? {
            target,
            requester,
            vatId,
            isAccepted: true,
            answer: (stamp, code) => answer(vatId, query, stamp, code)
          }
        : refused(status ?? "evatr-0012", target, requester, vatId)
    }
  })

const refused = (status: string, target: string | null, requester: string | null, vatId: VatId | undefined): Question => ({
  target,
  requester,
  vatId,
  isAccepted: false,
  answer: (stamp, code) => statusReply(code ?? status, stamp)
})

/**
 * Returns the status with which the BZSt refuses the requester or the queried VAT ID; undefined if it accepts both. The BZSt does
 * not document the order of its checks, so this order is inferred.
 */
const refusalOf = (requester: string, target: string, settings: Settings): string | undefined => {
  const own = Option.filter(exactly(requester), isGerman)
  if (Option.isNone(own)) return "evatr-0004"
  const ownStatus = magicOf(own.value).bzst.code
  if (ownStatus === "evatr-0004" || ownStatus === "evatr-2005") return ownStatus
  if (ownStatus !== undefined && notValid.has(ownStatus)) return "evatr-2005"
  if (!/^[A-Z]{2}[A-Z0-9+*]{2,12}$/u.test(target)) return "evatr-0005"
  const memberState = memberStates.get(target.slice(0, 2))
  if (memberState === undefined || !isMember(memberState)) return "evatr-2003"
  const admitted = settings.german_targets_admitted && ownStatus !== "evatr-0006"
  return target.startsWith("DE") && !admitted ? "evatr-0006" : undefined
}

const notValid: ReadonlySet<string> = new Set(["evatr-2001", "evatr-2002", "evatr-2006"])

/** Parses a VAT ID in the only form that BZSt accepts: with prefix, in upper case and without separators. */
const exactly = (vatId: string): Option.Option<VatId> =>
  Option.filter(Result.getSuccess(parse(vatId)), ({ value }) => value === vatId)

const isQualified = (query: Bestaetigungsabfrage): boolean => Boolean(query.firmenname) && Boolean(query.ort)

const answer = (vatId: VatId, query: Bestaetigungsabfrage, stamp: Stamp, code: string | undefined): Reply => {
  if (code !== undefined && code !== "evatr-0000") return statusReply(code, stamp, datesOf(vatId, code))
  if (isQualified(query)) return statusReply("evatr-0000", stamp, comparison(vatId, query))
  const asksToCompare = Boolean(query.firmenname) || Boolean(query.strasse) || Boolean(query.plz) || Boolean(query.ort)
  return statusReply(asksToCompare ? "evatr-0003" : "evatr-0000", stamp)
}

/** Compares company data and returns letters: A same, B different, C not queried, D not disclosed by the member state. */
const comparison = (vatId: VatId, query: Bestaetigungsabfrage): object => {
  const { disclosed, specimen } = magicOf(vatId)
  const company = companyOf(vatId, specimen)
  const letter = (sent: string | null | undefined, registered: string, secret: boolean) =>
    !sent ? "C" : secret ? "D" : sameText(sent, registered) ? "A" : "B"
  const nothing = disclosed === "nothing"
  const noAddress = disclosed !== undefined
  return {
    ergFirmenname: letter(query.firmenname, company.name, nothing),
    ergStrasse: letter(query.strasse, company.street, noAddress),
    ergPlz: letter(query.plz, company.postalCode, noAddress),
    ergOrt: letter(query.ort, company.city, noAddress)
  }
}

/** Formats dates as YYYY-MM-DD, or as DD.MM.YYYY if the VAT ID's first digit is odd, because the real BZSt sends both formats. */
const datesOf = (vatId: VatId, status: string): object => {
  const odd = /^\D*[13579]/u.test(vatId.number)
  const date = (iso: string) => (odd ? iso.split("-").toReversed().join(".") : iso)
  if (status === "evatr-2002") return { gueltigAb: date("2099-01-01") }
  return status === "evatr-2006" ? { gueltigAb: date("2010-01-01"), gueltigBis: date("2020-12-31") } : {}
}

/**
 * Returns an answer with the status, the time and the fields in `more`. With an HTTP status of 500 or above, the answer has no
 * `id`; this is inferred, not documented.
 */
export const statusReply = (status: string, stamp: Stamp, more: object = {}): Reply => {
  const http = httpStatusOf(status)
  return json(http, status, {
    ...(http < 500 ? { id: stamp.id } : {}),
    anfrageZeitpunkt: germanTime(stamp.nanos),
    status,
    ...more
  })
}

const berlin = DateTime.zoneMakeNamedUnsafe("Europe/Berlin")

/** German local time with offset and nanoseconds, e.g. `2025-09-22T18:33:04.564553064+02:00`. */
const germanTime = (nanos: bigint): string => {
  const time = DateTime.makeZonedUnsafe(Number(nanos / 1_000_000n), { timeZone: berlin })
  const fraction = String(nanos % 1_000_000_000n).padStart(9, "0")
  return DateTime.formatIsoOffset(time).replace(/\.\d{3}/u, `.${fraction}`)
}

/** Answers `GET /v1/info/statusmeldungen`. */
export const answerMessages = (): Reply => json(200, "statusmeldungen", statusMessages)

const germanNames = new Intl.DisplayNames(["de"], { type: "region" })

/**
 * Answers `GET /v1/info/eu_mitgliedstaaten`. The field `alpha2` contains the VAT prefix, such as `EL` for Greece; this is
 * inferred, not documented.
 */
export const answerMemberStates = (settings: Settings): Reply =>
  json(
    200,
    "eu_mitgliedstaaten",
    [...memberStates.values()].filter(isMember).map(({ prefix, alpha2 }) => ({
      alpha2: prefix,
      name: germanNames.of(alpha2),
      verfuegbar: settings.bzst_available && !settings.bzst_unavailable_member_states.includes(prefix)
    }))
  )

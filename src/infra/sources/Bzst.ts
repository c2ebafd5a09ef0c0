/**
 * The BZSt's eVatR, the German confirmation of foreign VAT IDs (§ 18e UStG), over REST.
 *
 * Contract: the OpenAPI document of https://api.evatr.vies.bzst.de/app, version 1.2.3.14, and recorded answers (read 2026-11).
 * The field `status` alone decides the verdict (`EvatrStatus.ts`). A call is not retried, because the BZSt asks clients not to
 * repeat a call immediately.
 */
import { Context, Effect, Layer, Option, Result, Schema, SchemaTransformation, type Duration } from "effect"
import type { Dispatcher } from "@effect/platform-node/NodeHttpClient"
import { calendarDate } from "#domain/text/CalendarDate.ts"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import { MatchLetter } from "#domain/receipts/Receipt.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import { Answer, type SourceFailure } from "#domain/vat/Verdict.ts"
import { evatrStatuses, unknownStatus, VerdictStatus } from "#infra/sources/EvatrStatus.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"

/**
 * The BZSt compares `company` only if it has a name and a city; otherwise the BZSt only validates the VAT ID (evatr-0003).
 * `requester` must be German. The BZSt answers a query for a German `vatId` only if it has admitted the requester; any other
 * requester gets evatr-0006.
 */
export interface Question {
  readonly vatId: VatId
  readonly requester: VatId
  readonly company: CompanyData | null
}

/**
 * A verdict of the BZSt. The fields `…_match` have the letters A to D, the results of a comparison with the register. They are
 * null unless the query was qualified and the VAT ID is valid. `code` repeats `status`.
 */
export const BzstAnswer = Schema.Struct({
  ...Answer.fields,
  status: VerdictStatus,
  request_id: Schema.NullOr(Schema.String),
  name_match: Schema.NullOr(MatchLetter),
  street_match: Schema.NullOr(MatchLetter),
  zip_match: Schema.NullOr(MatchLetter),
  city_match: Schema.NullOr(MatchLetter)
})
export type BzstAnswer = typeof BzstAnswer.Type

/** Whether the BZSt reaches a member state's register now. */
export interface MemberStateInfo {
  readonly alpha2: string
  readonly name: string
  readonly available: boolean
}

/**
 * `ask` sends one query, plain or qualified. `info` returns the availability of the member states' registers. It is a cheap
 * request, so it serves as a probe.
 */
export class Bzst extends Context.Service<
  Bzst,
  {
    readonly ask: (question: Question) => Effect.Effect<BzstAnswer, SourceFailure>
    readonly info: Effect.Effect<ReadonlyArray<MemberStateInfo>, SourceFailure>
  }
>()("vatproof/infra/sources/Bzst") {}

export interface Options {
  readonly baseUrl: string
  readonly timeout?: Duration.Input
}

export const make = Effect.fnUntraced(function* (options: Options) {
  const { baseUrl, timeout = "15 seconds" } = options
  // Uses a new connection for each query. The BZSt's answers do not name the VAT ID, so on a reused connection a late answer
  // could be mistaken for the answer to the next query.
  const http = yield* SourceHttp.make("bzst", { baseUrl, timeout, keepAlive: false })

  const ask = (question: Question) =>
    Effect.flatMap(http.post(SourceMetrics.checkPaths.bzst, requestBody(question)), (exchange) =>
      Effect.fromResult(readAnswer(exchange))
    )

  const info = Effect.flatMap(http.get("/v1/info/eu_mitgliedstaaten"), (exchange) => Effect.fromResult(readInfo(exchange)))

  return Bzst.of({ ask, info })
})

export const layer = (options: Options): Layer.Layer<Bzst, never, Dispatcher> => Layer.effect(Bzst, make(options))

/** Returns the request body. Both VAT IDs keep their prefix. Company fields that the caller did not supply are left out. */
const requestBody = ({ vatId, requester, company }: Question): Readonly<Record<string, string>> => ({
  anfragendeUstid: requester.value,
  angefragteUstid: vatId.value,
  ...optionalField("firmenname", company?.name),
  ...optionalField("strasse", company?.street),
  ...optionalField("plz", company?.zip),
  ...optionalField("ort", company?.city)
})

const optionalField = (field: string, value: string | null | undefined) =>
  value === null || value === undefined ? {} : { [field]: value }

const StatusBody = Schema.Struct({ status: Schema.String.check(Schema.isPattern(/^evatr-\d{1,8}$/u)) })
const decodeStatusBody = Schema.decodeUnknownOption(StatusBody)

/** A field of the BZSt that does not apply is absent, null or empty. */
const optionalOrEmpty = <S extends Schema.Constraint>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(Schema.Union([schema, Schema.Literal("")])))

/** Decodes a validity date, which is written YYYY-MM-DD or DD.MM.YYYY, to YYYY-MM-DD. */
const ValidityDate = Schema.String.pipe(
  Schema.decodeTo(
    Schema.String.check(Schema.makeFilter((text: string) => Option.isSome(calendarDate(text)))),
    SchemaTransformation.transform({
      decode: (written: string) => written.trim().replace(/^(\d{2})\.(\d{2})\.(\d{4})$/u, "$3-$2-$1"),
      encode: (date: string) => date
    })
  )
)

const Bestaetigungsantwort = Schema.Struct({
  status: VerdictStatus,
  anfrageZeitpunkt: SourceHttp.Instant,
  id: SourceHttp.OptionalText,
  gueltigAb: optionalOrEmpty(ValidityDate),
  gueltigBis: optionalOrEmpty(ValidityDate),
  ergFirmenname: optionalOrEmpty(MatchLetter),
  ergStrasse: optionalOrEmpty(MatchLetter),
  ergPlz: optionalOrEmpty(MatchLetter),
  ergOrt: optionalOrEmpty(MatchLetter)
})
const decodeVerdict = Schema.decodeUnknownOption(Bestaetigungsantwort)
const timelyVerdict = (exchange: SourceHttp.Exchange) =>
  Option.filter(decodeVerdict(exchange.json), ({ anfrageZeitpunkt }) => SourceHttp.isTimely(exchange, anfrageZeitpunkt))

const readAnswer = (exchange: SourceHttp.Exchange): Result.Result<BzstAnswer, SourceFailure> => {
  const statusBody = decodeStatusBody(exchange.json)
  if (Option.isNone(statusBody)) return Result.fail(SourceHttp.failureWithoutCode("bzst", exchange))
  const { status } = statusBody.value
  const outcome = evatrStatuses.get(status)?.outcome ?? unknownStatus
  if (outcome !== "valid" && outcome !== "invalid") return Result.fail(SourceHttp.failure("bzst", exchange, status, outcome))
  return Result.fromOption(
    Option.map(timelyVerdict(exchange), (body) => toAnswer(body, outcome === "valid", exchange)),
    () => SourceHttp.failure("bzst", exchange, status, SourceHttp.malformed)
  )
}

/** The status of the answer to a qualified query for a valid VAT ID. With any other status, the match letters have no meaning. */
const qualified = "evatr-0000"

const toAnswer = (body: typeof Bestaetigungsantwort.Type, valid: boolean, exchange: SourceHttp.Exchange): BzstAnswer => ({
  source: "bzst",
  valid,
  code: body.status,
  answered_at: body.anfrageZeitpunkt,
  company_name: null,
  company_address: null,
  consultation_number: null,
  valid_from: body.gueltigAb || null,
  valid_until: body.gueltigBis || null,
  evidence: exchange.evidence,
  status: body.status,
  request_id: SourceHttp.disclosed(body.id),
  ...lettersOf(body)
})

const lettersOf = (body: typeof Bestaetigungsantwort.Type) => {
  const letter = (field: MatchLetter | "" | null | undefined) => (body.status === qualified && field ? field : null)
  return {
    name_match: letter(body.ergFirmenname),
    street_match: letter(body.ergStrasse),
    zip_match: letter(body.ergPlz),
    city_match: letter(body.ergOrt)
  }
}

const EUMitgliedstaaten = Schema.Array(Schema.Struct({ alpha2: Schema.String, name: Schema.String, verfuegbar: Schema.Boolean }))
const decodeInfo = Schema.decodeUnknownOption(EUMitgliedstaaten)

const readInfo = (exchange: SourceHttp.Exchange): Result.Result<ReadonlyArray<MemberStateInfo>, SourceFailure> => {
  const states = exchange.evidence.http_status === 200 ? decodeInfo(exchange.json) : Option.none()
  return Result.fromOption(
    Option.map(states, (rows) => rows.map(({ alpha2, name, verfuegbar }) => ({ alpha2, name, available: verfuegbar }))),
    () => SourceHttp.failureWithoutCode("bzst", exchange)
  )
}

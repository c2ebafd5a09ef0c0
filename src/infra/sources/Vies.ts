/**
 * VIES, the Commission's look-up in the member states' registers, over REST.
 *
 * Contract: https://ec.europa.eu/assets/taxud/vow-information/swagger_publicVAT.yaml (read 2026-11). Errors come as envelopes with
 * HTTP 200, and fields vary by member state. A failed call is not retried here; `SourceFailover` decides about retries.
 */
import { Context, Effect, Layer, Option, Result, Schema, type Duration } from "effect"
import type { Dispatcher } from "@effect/platform-node/NodeHttpClient"
import { normalise, type VatId } from "#domain/vat/VatId.ts"
import type { Answer, SourceFailure } from "#domain/vat/Verdict.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"
import { unknownCode, viesCodes } from "#infra/sources/ViesCodes.ts"

/** If there is a `requester`, VIES gives it a consultation number for a valid VAT ID. */
export interface Question {
  readonly vatId: VatId
  readonly requester: VatId | null
  /** True if no client waits for the answer. */
  readonly isBackground?: boolean
}

/**
 * `check` queries one VAT ID. If VIES rejects the requester, `check` repeats the query without a requester; that answer has no
 * consultation number. `available` returns the availability that VIES reports for itself. Each ends within the layer's timeout.
 */
export class Vies extends Context.Service<
  Vies,
  {
    readonly check: (question: Question) => Effect.Effect<Answer, SourceFailure>
    readonly available: Effect.Effect<boolean, SourceFailure>
  }
>()("vatproof/infra/sources/Vies") {}

/**
 * `timeout` bounds a whole `check` or `available`. Some registers take 16 seconds to answer, and a call that hangs takes 30 seconds.
 * `spend` counts a question before VIES is called, and fails if the daily budget is used up. `noteRequester` learns whether VIES rejected
 * the requester of a question.
 */
export interface Options {
  readonly baseUrl: string
  readonly spend?: (isBackground: boolean) => Effect.Effect<void, SourceFailure>
  readonly noteRequester?: (requester: VatId, isRejected: boolean) => Effect.Effect<void>
  readonly timeout?: Duration.Input
}

export const make = Effect.fnUntraced(function* (options: Options) {
  const http = yield* SourceHttp.make("vies", { baseUrl: options.baseUrl, timeout: options.timeout ?? "20 seconds" })

  const { noteRequester = () => Effect.void, spend = () => Effect.void } = options

  const ask = (question: Question) =>
    spend(question.isBackground === true).pipe(
      Effect.andThen(http.post(SourceMetrics.checkPaths.vies, requestBody(question))),
      Effect.flatMap((exchange) => Effect.fromResult(readAnswer(question, exchange)))
    )

  const check = (question: Question) => {
    const answer = ask(question)
    const { requester } = question
    if (requester === null) return answer
    const answerEvenWithoutRequester = answer.pipe(
      Effect.tap(noteRequester(requester, false)),
      Effect.catchIf(
        (failure) => failure.reason === "requester_rejected",
        () => Effect.andThen(noteRequester(requester, true), ask({ ...question, requester: null }))
      )
    )
    return http.within(answerEvenWithoutRequester)
  }

  const available = Effect.flatMap(http.get("/check-status"), (exchange) =>
    Effect.fromResult(Result.map(successful(exchange, decodeStatus), ({ vow }) => vow.available))
  )

  return Vies.of({ check, available })
})

export const layer = (options: Options): Layer.Layer<Vies, never, Dispatcher> => Layer.effect(Vies, make(options))

/** Returns the request body. Both numbers have no prefix, because VIES rejects a number with a prefix. */
const requestBody = ({ vatId, requester }: Question): Readonly<Record<string, string>> => ({
  countryCode: vatId.memberState.prefix,
  vatNumber: vatId.number,
  ...(requester === null ? {} : { requesterMemberStateCode: requester.memberState.prefix, requesterNumber: requester.number })
})

const verdictWord = (valid: boolean) => (valid ? "VALID" : "INVALID")

const CheckVatResponse = Schema.Struct({
  actionSucceed: Schema.optionalKey(Schema.Literal(true)),
  errorWrappers: Schema.optionalKey(Schema.NullOr(Schema.Tuple([]))),
  userError: Schema.optionalKey(Schema.NullOr(Schema.Literals(["", "VALID", "INVALID"]))),
  error: Schema.optionalKey(Schema.NullOr(Schema.Literal(""))),
  countryCode: Schema.String,
  vatNumber: Schema.String,
  requestDate: SourceHttp.Instant,
  valid: Schema.Boolean,
  isValid: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  requestIdentifier: SourceHttp.OptionalText,
  name: SourceHttp.OptionalText,
  address: SourceHttp.OptionalText
}).check(
  // Contradictory fields make the answer malformed.
  Schema.makeFilter(
    ({ isValid, userError, valid }) => (isValid ?? valid) === valid && (userError || verdictWord(valid)) === verdictWord(valid)
  )
)
const decodeCheckVatResponse = Schema.decodeUnknownOption(CheckVatResponse)

const readAnswer = (question: Question, exchange: SourceHttp.Exchange): Result.Result<Answer, SourceFailure> => {
  const body = successful(exchange, decodeCheckVatResponse)
  if (Result.isFailure(body)) return Result.fail(body.failure)
  const { success: answer } = body
  // An answer about another VAT ID or of another day is malformed.
  const isAbout =
    answer.countryCode === question.vatId.memberState.prefix && normalise(answer.vatNumber) === question.vatId.number
  if (!isAbout || !SourceHttp.isTimely(exchange, answer.requestDate)) {
    return Result.fail(SourceHttp.failure("vies", exchange, null, SourceHttp.malformed))
  }
  return Result.succeed({
    source: "vies",
    valid: answer.valid,
    code: null,
    answered_at: answer.requestDate,
    company_name: SourceHttp.disclosed(answer.name),
    company_address: SourceHttp.disclosed(answer.address),
    consultation_number: question.requester === null ? null : SourceHttp.disclosed(answer.requestIdentifier),
    valid_from: null,
    valid_until: null,
    evidence: exchange.evidence
  })
}

/** VIES also reports the availability of each register. It is not read, because it says "Available" while the register refuses. */
const StatusInformationResponse = Schema.Struct({ vow: Schema.Struct({ available: Schema.Boolean }) })
const decodeStatus = Schema.decodeUnknownOption(StatusInformationResponse)

const ErrorWord = Schema.String.check(Schema.isPattern(/^[\w-]{1,64}$/u))
/** The bodies of error responses: an envelope, or the fields of VIES' GET interface. */
const CommonResponse = Schema.Union([
  Schema.Struct({ errorWrappers: Schema.NonEmptyArray(Schema.Struct({ error: ErrorWord })) }),
  Schema.Struct({ userError: ErrorWord.check(Schema.isPattern(/^(?!(?:IN)?VALID$)/u)) }),
  Schema.Struct({ actionSucceed: Schema.Literal(false) })
])
const decodeEnvelope = Schema.decodeUnknownOption(CommonResponse)

/** Decodes the body of a success. An error envelope takes precedence over everything else in the body. */
const successful = <A>(
  exchange: SourceHttp.Exchange,
  decode: (json: unknown) => Option.Option<A>
): Result.Result<A, SourceFailure> => {
  const envelope = decodeEnvelope(exchange.json)
  if (Option.isSome(envelope)) return Result.fail(errorOf(exchange, envelope.value))
  const body = exchange.evidence.http_status === 200 ? decode(exchange.json) : Option.none<A>()
  return Result.fromOption(body, () => SourceHttp.failureWithoutCode("vies", exchange))
}

const errorOf = (exchange: SourceHttp.Exchange, envelope: typeof CommonResponse.Type): SourceFailure => {
  if ("actionSucceed" in envelope) return SourceHttp.failureWithoutCode("vies", exchange)
  const error = "userError" in envelope ? envelope.userError : envelope.errorWrappers[0].error
  return SourceHttp.failure("vies", exchange, error, viesCodes.get(error) ?? unknownCode)
}

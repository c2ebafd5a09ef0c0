import { DateTime, Effect, MutableRef } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { companyData } from "#domain/Confirmation.ts"
import { letterOf } from "#domain/Receipt.ts"
import { RepeatAnswer } from "#domain/RepeatAnswer.ts"
import { RequestContext } from "#domain/RequestContext.ts"
import { type Confirmation, ValidateVatId, type Validation } from "#domain/ValidateVatId.ts"
import { Api } from "#http/Api.ts"
import { CurrentCaller } from "#http/Authentication.ts"
import * as Errors from "#http/Errors.ts"
import { RequestScope } from "#http/RequestScope.ts"

/** RFC 7234, 5.5.1: the answer is older than it should be, because no source can be asked. */
const staleWarning = '110 - "Response is Stale"'

export const layer = HttpApiBuilder.group(
  Api,
  "validation",
  Effect.fnUntraced(function* (handlers) {
    const { validate } = yield* ValidateVatId
    const { rememberAnswer } = yield* RepeatAnswer

    return handlers.handle(
      "validate",
      Effect.fnUntraced(function* ({ params, query }) {
        const requestedAt = yield* DateTime.now
        const { company_city, company_name, company_street, company_zip, force_live, match_format, requester_vat_id } = query
        const caller = yield* CurrentCaller
        const { usage } = yield* RequestScope
        const validation = yield* validate({
          caller,
          input: params.vat_id,
          requesterVatId: requester_vat_id === undefined || requester_vat_id === "" ? null : requester_vat_id,
          company: companyData({ name: company_name, street: company_street, zip: company_zip, city: company_city }),
          forceLive: force_live === "true" || force_live === "1"
        }).pipe(
          // A refusal, or an outage that was counted, may know more than what stood on the meter at first.
          Effect.tapErrorTag("QuotaExceeded", ({ limit, used }) => Effect.sync(() => MutableRef.set(usage, { used, limit }))),
          Effect.tapErrorTag("SourcesUnavailable", ({ usage: counted = caller.usage }) =>
            Effect.sync(() => MutableRef.set(usage, counted))
          )
        )
        MutableRef.set(usage, validation.usage)
        // The cache knows more about a company than a confirmation, which has no names.
        if (validation.confirmation === null) rememberAnswer(validation)
        const { requestId } = yield* RequestContext
        return HttpApiSchema.withHeaders({
          body: { ...bodyOf(validation, match_format ?? "words"), request_id: requestId, requested_at: requestedAt },
          headers: validation.served === "stale" ? { warning: staleWarning } : {}
        })
      }, Errors.respond)
    )
  })
)

const bodyOf = ({ answer, confirmation, served, vatId }: Validation, format: "words" | "letters") => ({
  valid: answer.valid,
  vat_id: vatId.value,
  country_code: vatId.memberState.alpha2,
  vat_number: vatId.number,
  company_name: answer.company_name,
  company_address: answer.company_address,
  source: served === "live" ? answer.source : ("cache" as const),
  source_timestamp: answer.answered_at,
  cache: served !== "live",
  qualified_confirmation: confirmation === null ? null : confirmationOf(confirmation, format),
  consultation_number: answer.consultation_number
})

/** Both shapes tell the same (INTERFACE 2.2, DECISIONS 25). */
const confirmationOf = ({ receipt, requestId }: Confirmation, format: "words" | "letters") => {
  const { issued_at, receipt_id, source } = receipt
  const { city_match, name_match, street_match, zip_match } = receipt.result
  const issued = { receipt_id, issued_at, source }
  if (format === "words") return { name_match, street_match, zip_match, city_match, ...issued }
  return {
    name_match: letterOf(name_match),
    street_match: letterOf(street_match),
    zip_match: letterOf(zip_match),
    city_match: letterOf(city_match),
    confirmation_number: requestId,
    ...issued
  }
}

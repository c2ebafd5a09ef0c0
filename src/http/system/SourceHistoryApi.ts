/** Declares GET /v1/status/history (rule 91). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { History, maxDays, maxDaysOfHours } from "#domain/vat/SourceHistory.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { errorBody } from "#http/pipeline/Errors.ts"

export const defaultDays = 30

const Days = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxDays })).annotate({
  description: `Number of days in UTC, today included. Up to ${maxDaysOfHours} days are counted per hour, more per day`,
  default: defaultDays
})

export class SourceHistoryApi extends HttpApiGroup.make("sourceHistory")
  .add(
    HttpApiEndpoint.get("history", "/v1/status/history", {
      query: {
        member_state: Schema.optionalKey(
          Schema.Literals([...memberStates.keys()]).annotate({ description: "Only this prefix of VAT IDs", examples: ["FR"] })
        ),
        days: Schema.optionalKey(fromDigits(Days))
      },
      success: History,
      error: [errorBody("VALIDATION_ERROR"), errorBody("REQUEST_HEADER_FIELDS_TOO_LARGE"), errorBody("SERVICE_UNAVAILABLE")]
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "getSourceHistory",
        summary: "Get the history of the sources",
        description:
          "Counts the calls that this service made for validations, from the signed events of the log. It counts calls, not minutes: a period without calls says nothing about the register. " +
          "A call that several concurrent validations share counts for each of them. Attempts of pending validations that got no answer are no events and do not count.",
        transform: numberParameters({ days: Days })
      })
    )
  )
  .middleware(DecodeErrors)
  .annotateMerge(OpenApi.annotations({ title: "History", description: "How the sources answered." })) {}

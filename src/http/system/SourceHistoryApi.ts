/** Declares GET /v1/status/history (rule 91). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { maxDays, maxDaysOfHours } from "#domain/vat/SourceHistory.ts"
import { SourceName } from "#domain/vat/Verdict.ts"
import { fromDigits, numberParameters } from "#http/openapi/NumberParameters.ts"
import { DecodeErrors } from "#http/pipeline/DecodeErrors.ts"
import { errorBody } from "#http/pipeline/Errors.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

export const historyPath = "/v1/status/history"
export const defaultDays = 30

const Days = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxDays })).annotate({
  description: `Number of days in UTC, today included. Up to ${maxDaysOfHours} days are counted per hour, more per day`,
  default: defaultDays
})

const CallsOfPeriod = Schema.Struct({
  from: Timestamp.annotate({ description: "Start of the hour or day" }),
  source: SourceName,
  calls: Schema.Int.annotate({ description: "Calls of this source about VAT IDs of the member state" }),
  answered: Schema.Int.annotate({ description: "Calls with a verdict, valid or invalid" }),
  failed: Schema.Record(Schema.String, Schema.Int).annotate({
    description: "Calls without a verdict, by the code of the source, or by the reason if the source sent no code"
  }),
  mean_ms: Schema.NullOr(Schema.Int).annotate({
    description: "Mean duration of the answered calls in milliseconds; null if no call was answered"
  }),
  max_ms: Schema.NullOr(Schema.Int).annotate({ description: "Duration of the longest answered call in milliseconds" })
}).annotate({ identifier: "SourceCalls" })

export const SourceHistoryReport = Schema.Struct({
  timestamp: Timestamp.annotate({ description: "Time of the counts, which are at most a minute old" }),
  resolution: Schema.Literals(["hour", "day"]),
  member_states: Schema.Record(Schema.String, Schema.Array(CallsOfPeriod)).annotate({
    description:
      "Calls by the prefix of the VAT IDs (Greece: EL, Northern Ireland: XI), oldest first. A period without calls is absent"
  })
}).annotate({ identifier: "SourceHistory", description: "Calls of the sources by this service" })

export class SourceHistoryApi extends HttpApiGroup.make("sourceHistory")
  .add(
    HttpApiEndpoint.get("history", historyPath, {
      query: {
        member_state: Schema.optionalKey(
          Schema.Literals([...memberStates.keys()]).annotate({ description: "Only this prefix of VAT IDs", examples: ["FR"] })
        ),
        days: Schema.optionalKey(fromDigits(Days))
      },
      success: SourceHistoryReport,
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

/** Declares GET /v1/usage (rules 36-38). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PlanName } from "#domain/callers/PlanLimits.ts"
import { KeyRequired } from "#http/pipeline/Authentication.ts"
import { authenticationErrors } from "#http/pipeline/Errors.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

export const usagePath = "/v1/usage"

export const UsageReport = Schema.Struct({
  plan: PlanName,
  period: Schema.Struct({
    start: Timestamp,
    end: Timestamp
  }),
  requests: Schema.Struct({
    used: Schema.Int.annotate({ description: "Validations counted in this period" }),
    remaining: Schema.Int.annotate({ description: "limit minus used" }),
    limit: Schema.Int.annotate({ description: "Validations per period" })
  })
}).annotate({
  identifier: "Usage",
  description: "Usage of the API key in this month; `period.end` is the start of the next month"
})

export class UsageApi extends HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("usage", usagePath, {
      success: UsageReport,
      error: authenticationErrors
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "getUsage",
        summary: "Get the usage of this API key",
        description: "Returns the plan of the API key and its validations in this period. A period is a calendar month in UTC."
      })
    )
  )
  .middleware(KeyRequired)
  .annotateMerge(OpenApi.annotations({ title: "Usage", description: "The usage of an API key." })) {}

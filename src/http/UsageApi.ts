/** GET /v1/usage (INTERFACE 2.5 and 4.4). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { PlanName } from "#domain/Plan.ts"
import { KeyRequired } from "#http/Authentication.ts"
import { errorBody } from "#http/Errors.ts"
import { RequestErrors } from "#http/RequestErrors.ts"

const UsageReport = Schema.Struct({
  plan: PlanName,
  period: Schema.Struct({
    start: Schema.DateTimeUtcFromString,
    end: Schema.DateTimeUtcFromString.annotate({ description: "Start of the next period" })
  }),
  requests: Schema.Struct({
    used: Schema.Int.annotate({ description: "Validations counted in this period" }),
    remaining: Schema.Int,
    limit: Schema.Int
  })
}).annotate({ identifier: "Usage" })

export class UsageApi extends HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("usage", "/v1/usage", {
      success: UsageReport,
      error: [errorBody(401, ["UNAUTHORIZED"]), errorBody(503, ["SERVICE_UNAVAILABLE"])]
    }).annotateMerge(
      OpenApi.annotations({ summary: "What this API key has used up", description: "A period is a calendar month in UTC." })
    )
  )
  .middleware(RequestErrors)
  .middleware(KeyRequired) {}

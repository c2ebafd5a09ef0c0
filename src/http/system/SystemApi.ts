/** GET /health and GET /v1/status (rules 6, 24). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { SourceState } from "#domain/vat/Sources.ts"
import { errorBody } from "#http/pipeline/Errors.ts"
import { Timestamp } from "#http/wire/Timestamp.ts"

export const healthPath = "/health"
export const statusPath = "/v1/status"

export const Health = Schema.Struct({
  status: Schema.Literal("ok"),
  timestamp: Timestamp,
  version: Schema.String.annotate({ description: "Version of this interface", examples: ["0.1.0"] })
}).annotate({ identifier: "Health", description: "The service is up" })

const OneSource = Schema.Struct({
  status: SourceState,
  latency_ms: Schema.NullOr(Schema.Int).annotate({
    description: "Of the newest answer; null before the first one and while unavailable"
  }),
  last_checked: Timestamp
}).annotate({ identifier: "OneSource" })

const MemberStateReport = Schema.Struct({
  status: SourceState.annotate({
    description:
      "degraded: the next call shows whether the register answers again, or (DE) only the BZSt answers, for callers with a key. " +
      "unavailable: calls are refused at present"
  }),
  since: Timestamp.annotate({ description: "Since when, as this replica sees it" })
}).annotate({ identifier: "MemberStateStatus" })

export const SourceStatusReport = Schema.Struct({
  status: Schema.Literals(["operational", "degraded"]).annotate({
    description: "operational while at least one source answers; degraded from the first failures of all of them"
  }),
  timestamp: Timestamp,
  sources: Schema.Struct({ vies: OneSource, bzst: OneSource, cache: Schema.Struct({ status: SourceState }) }),
  active_source: Schema.Literals(["vies", "bzst"]).annotate({
    description: "The source that a German VAT ID would be sent to now"
  }),
  failover_active: Schema.Boolean.annotate({ description: "VIES is unavailable, and the BZSt stands in for German VAT IDs" }),
  member_states: Schema.Record(Schema.String, MemberStateReport).annotate({
    description: "By the prefix of VAT IDs (Greece: EL, Northern Ireland: XI): whether those of a member state can be validated"
  })
}).annotate({ identifier: "SourceStatus", description: "The sources as this replica sees them" })

/** All that is ever wrong with a request that has no body and no parameters. */
const tooLong = errorBody(431, ["REQUEST_HEADER_FIELDS_TOO_LARGE"])

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("health", healthPath, { success: Health, error: tooLong }).annotateMerge(
      OpenApi.annotations({
        identifier: "getHealth",
        summary: "Is the service up?",
        description: "Says nothing about the sources: see /v1/status."
      })
    )
  )
  .add(
    HttpApiEndpoint.get("status", statusPath, { success: SourceStatusReport, error: tooLong }).annotateMerge(
      OpenApi.annotations({
        identifier: "getSourceStatus",
        summary: "How are the sources?",
        description: "From live calls, and from a probe in the background. This request asks no source."
      })
    )
  )
  .annotateMerge(OpenApi.annotations({ title: "System", description: "Whether the service is up, and how the sources are." })) {}

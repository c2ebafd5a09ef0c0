/** Declares GET /health and GET /v1/status (rules 6, 24). */
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
    description: "Duration of the newest answer in milliseconds; null before the first answer and while the source is unavailable"
  }),
  last_checked: Timestamp
}).annotate({ identifier: "OneSource" })

const MemberStateReport = Schema.Struct({
  status: SourceState.annotate({
    description:
      "degraded: the register failed and the next call tries it again, or (DE) only the BZSt answers, for callers with a key. " +
      "unavailable: validations of this member state fail"
  }),
  since: Timestamp.annotate({ description: "Start of this state, as this replica observes it" })
}).annotate({ identifier: "MemberStateStatus" })

export const SourceStatusReport = Schema.Struct({
  status: Schema.Literals(["operational", "degraded"]).annotate({
    description: "operational: at least one source answers. degraded: all sources fail"
  }),
  timestamp: Timestamp,
  sources: Schema.Struct({ vies: OneSource, bzst: OneSource, cache: Schema.Struct({ status: SourceState }) }),
  active_source: Schema.Literals(["vies", "bzst"]).annotate({
    description: "The source of the next lookup of a German VAT ID"
  }),
  failover_active: Schema.Boolean.annotate({ description: "VIES is unavailable, and the BZSt answers for German VAT IDs" }),
  member_states: Schema.Record(Schema.String, MemberStateReport).annotate({
    description: "State of each member state's register, by the prefix of its VAT IDs (Greece: EL, Northern Ireland: XI)"
  })
}).annotate({ identifier: "SourceStatus", description: "The sources as this replica observes them" })

/** The error for headers that are too long. It is the only error that a request without body and parameters can cause. */
const tooLong = errorBody("REQUEST_HEADER_FIELDS_TOO_LARGE")

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("health", healthPath, { success: Health, error: tooLong }).annotateMerge(
      OpenApi.annotations({
        identifier: "getHealth",
        summary: "Get the health of the service",
        description: "Reports that the service is up. It does not depend on the sources; for those see /v1/status."
      })
    )
  )
  .add(
    HttpApiEndpoint.get("status", statusPath, { success: SourceStatusReport, error: tooLong }).annotateMerge(
      OpenApi.annotations({
        identifier: "getSourceStatus",
        summary: "Get the status of the sources",
        description: "The status follows from live calls and from background probes. This request asks no source."
      })
    )
  )
  .annotateMerge(OpenApi.annotations({ title: "System", description: "Health of the service and status of the sources." })) {}

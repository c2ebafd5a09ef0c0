/** GET /health and GET /v1/status (INTERFACE 2.7, 4.1, 4.2, DECISIONS 24). */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { SourceState } from "#domain/Sources.ts"

export const Health = Schema.Struct({
  status: Schema.Literal("ok"),
  timestamp: Schema.DateTimeUtcFromString,
  version: Schema.String.annotate({ description: "Version of this interface" })
}).annotate({ identifier: "Health" })

const OneSource = Schema.Struct({
  status: SourceState,
  latency_ms: Schema.NullOr(Schema.Int).annotate({
    description: "Of the newest answer; null before the first one and while unavailable"
  }),
  last_checked: Schema.DateTimeUtcFromString
})

export const SourceStatusReport = Schema.Struct({
  status: Schema.Literals(["operational", "degraded"]).annotate({ description: "operational when at least one source is up" }),
  timestamp: Schema.DateTimeUtcFromString,
  sources: Schema.Struct({ vies: OneSource, bzst: OneSource, cache: Schema.Struct({ status: SourceState }) }),
  active_source: Schema.Literals(["vies", "bzst"]).annotate({
    description: "The source that a German VAT ID would be sent to now"
  }),
  failover_active: Schema.Boolean
}).annotate({ identifier: "SourceStatus" })

export class SystemApi extends HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("health", "/health", { success: Health }).annotateMerge(
      OpenApi.annotations({ summary: "Is the service up?", description: "Says nothing about the sources: see /v1/status." })
    )
  )
  .add(
    HttpApiEndpoint.get("status", "/v1/status", { success: SourceStatusReport }).annotateMerge(
      OpenApi.annotations({ summary: "How are the sources?" })
    )
  ) {}

/** The trace of a request at a collector: one trace that follows the conventions. */
import { Effect, FileSystem, Layer, Queue, Redacted, Schema } from "effect"
import { HttpClient } from "effect/http"
import { SqlClient, SqlSchema } from "effect/sql"
import * as Auditing from "#test/support/Auditing.ts"
import * as MailServer from "#test/support/MailServer.ts"
import { Collector, type ReceivedSpan, settingsFor } from "#test/support/Collector.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, layer } from "#test/support/Test.ts"

const serviceSending = Effect.fnUntraced(function* (name: string, settings: RunningService.Settings = {}) {
  const { url } = yield* Collector
  return yield* RunningService.make({ ...settingsFor(url, name), OTEL_TRACES_SAMPLER: "always_on", ...settings })
})

const one = (spans: ReadonlyArray<ReceivedSpan>, name: string) => {
  const found = spans.filter((span) => span.name === name)
  assert.strictEqual(found.length, 1, `${name} among ${spans.map((span) => span.name).join(", ")}`)
  return found[0] ?? assert.fail()
}

const traceIdOf = (headers: Readonly<Record<string, string | undefined>>) => headers["x-trace-id"] ?? assert.fail("no X-Trace-Id")

/** Sends the traceparent header of the test: Effect's client would otherwise send its own span. */
const plainly = Effect.provideService(HttpClient.TracerDisabledWhen, () => true)

const route = "GET /v1/validate/{vat_id}"

const findTraceIds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Schema.Struct({ trace_id: Schema.NullOr(Schema.String) }),
    execute: () => sql`SELECT encode(trace_id, 'hex') AS trace_id FROM vatproof.events ORDER BY position`
  })
  return (yield* find(undefined)).map(({ trace_id }) => trace_id)
})

const parentTraceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const parentSpanId = "00f067aa0ba902b7"

layer(Layer.mergeAll(RunningService.layerSharedGround, Collector.layer, StandIn.layer), { excludeTestServices: true })(
  "the trace of a request",
  (it) => {
    it.effect.each([
      ["http/protobuf", "traced", {}],
      ["http/json", "traced-json", { OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }]
    ] as const)(
      "arrives over %s with the spans of server, look-up, source and append, each under its parent",
      function* ([_, name, settings]) {
        const collector = yield* Collector
        const service = yield* serviceSending(name, settings)
        const { headers, status } = yield* plainly(
          service.validate("ATU12345678", { from: "203.0.113.7", query: { force_live: "true" } })
        )
        assert.strictEqual(status, 200)
        const spans = yield* collector.trace(name, traceIdOf(headers), route)
        const server = one(spans, route)
        const attempt = one(spans, "POST /check-vat-number")
        assert.isTrue(server.parentSpanId === undefined || server.parentSpanId === null || server.parentSpanId === "")
        assert.strictEqual(attempt.parentSpanId, one(spans, "Sources.lookUp").spanId)
        assert.strictEqual(one(spans, "Sources.lookUp").parentSpanId, server.spanId)
        assert.strictEqual(one(spans, "EventStore.append").parentSpanId, server.spanId)

        assert.strictEqual(server.kind, "SPAN_KIND_SERVER")
        assert.deepInclude(server.attributes, {
          "http.request.method": "GET",
          "http.route": "/v1/validate/{vat_id}",
          "url.scheme": "http"
        })
        assert.strictEqual(Number(server.attributes?.["http.response.status_code"]), 200)
        assert.strictEqual(attempt.kind, "SPAN_KIND_CLIENT")
        assert.deepInclude(attempt.attributes, {
          "vatproof.source": "vies",
          "vatproof.member_state": "AT",
          "vatproof.outcome": "answered",
          "http.request.method": "POST",
          "server.address": "127.0.0.1",
          "url.template": "/check-vat-number"
        })
        assert.match(String(attempt.attributes?.["url.full"]), /^http:\/\/127\.0\.0\.1:\d+\/\S*check-vat-number$/u)
        assert.deepInclude(server.attributes, {
          "vatproof.cache.outcome": "bypass",
          "vatproof.verdict": "valid",
          "vatproof.source": "vies"
        })
        for (const span of spans) {
          assert.isTrue(BigInt(span.startTimeUnixNano) >= BigInt(server.startTimeUnixNano), span.name)
          assert.isTrue(BigInt(span.endTimeUnixNano) <= BigInt(server.endTimeUnixNano), span.name)
        }
        assert.include(yield* findTraceIds, traceIdOf(headers))
      }
    )

    it.effect("continues the caller's trace", function* () {
      const collector = yield* Collector
      const service = yield* serviceSending("traced")
      const traceparent = `00-${parentTraceId}-${parentSpanId}-01`
      const { headers } = yield* plainly(service.validate("BE0123456789", { headers: { traceparent, tracestate: "vendor=1" } }))
      assert.strictEqual(headers["x-trace-id"], parentTraceId)
      const spans = yield* collector.trace("traced", parentTraceId, route)
      assert.strictEqual(one(spans, route).parentSpanId, parentSpanId)
      assert.strictEqual(one(spans, "EventStore.append").parentSpanId, one(spans, route).spanId)
    })

    it.effect("of a cached answer has two spans, and a link to the batch that stored its event", function* () {
      const collector = yield* Collector
      const service = yield* serviceSending("traced")
      const key = yield* service.newKey
      yield* service.validate("BE0123456788", { key })
      const { headers } = yield* plainly(service.validate("BE0123456788", { key }))
      const spans = yield* collector.trace("traced", traceIdOf(headers), route)
      assert.sameMembers(
        spans.map(({ name }) => name),
        [route, "EventStore.append"]
      )
      const append = one(spans, "EventStore.append")
      const [link] = append.links ?? []
      const batch = yield* collector.until(() => collector.spansOf("traced").find(({ spanId }) => spanId === link?.spanId))
      assert.strictEqual(batch.name, "append")
      assert.strictEqual(batch.kind, "SPAN_KIND_CLIENT")
      assert.notStrictEqual(batch.traceId, append.traceId)
      assert.strictEqual(batch.links?.[0]?.spanId, append.spanId)
      assert.deepInclude(batch.attributes, { "db.system.name": "postgresql", "db.stored_procedure.name": "append" })
      assert.strictEqual(Number(batch.attributes?.["db.operation.batch.size"]), 1)
      assert.isEmpty(
        collector.spansOf("traced").filter(({ traceId, spanId }) => traceId === batch.traceId && spanId !== batch.spanId)
      )
    })

    it.effect("names each statement by its operation and target", function* () {
      const collector = yield* Collector
      const service = yield* serviceSending("traced")
      const agent = { agent_id: "GB-999999973-agent", email: "reader@example.com" }
      const { headers, status } = yield* plainly(service.post("/v1/register", agent, { from: "203.0.113.8" }))
      assert.strictEqual(status, 201)
      const spans = yield* collector.trace("traced", traceIdOf(headers), "POST /v1/register")
      const statements = spans.filter(({ attributes }) => attributes?.["db.system.name"] === "postgresql")
      const [insert] = statements.filter(({ name }) => name === "INSERT contacts")
      assert.deepInclude(insert?.attributes, { "db.operation.name": "INSERT", "db.collection.name": "contacts" })
      assert.include(
        statements.map(({ name }) => name),
        "append"
      )
      for (const { attributes, name } of statements) {
        assert.match(name, /^(?:[A-Z]+(?: [a-z_]+)?|[a-z_]+|sql\.transaction)$/u)
        assert.notProperty(attributes, "db.query.text")
      }
    })

    it.effect("is not propagated to the sources, and neither are the caller's headers", function* () {
      const { baseUrl, calls, next } = yield* StandIn.StandIn
      const service = yield* serviceSending("discreet", { VIES_BASE_URL: baseUrl })
      yield* next(...Array.from({ length: 20 }, () => StandIn.answer(503, {})))
      const headers = { traceparent: `00-${parentTraceId}-${parentSpanId}-01`, baggage: "a=1", "x-request-id": "mine" }
      assert.strictEqual((yield* plainly(service.validate("PT500000123", { headers, from: "203.0.113.7" }))).status, 503)
      const heads = (yield* Queue.takeAll(calls)).map(({ head }) => head)
      assert.isTrue(heads.some((head) => head.startsWith("POST")))
      for (const head of heads)
        assert.notMatch(head, /traceparent|tracestate|baggage|b3|x-request-id|forwarded|4bf92f35|203\.0/iu)
    })

    it.effect.each(["00-xyz", `00-${"0".repeat(32)}-${parentSpanId}-01`, `ff-${parentTraceId}-${parentSpanId}-01`, ""])(
      "is a new one if traceparent is %j",
      function* (traceparent) {
        const service = yield* serviceSending("traced")
        const { headers } = yield* plainly(service.get("/health", { headers: { traceparent } }))
        assert.match(traceIdOf(headers), /^(?!0{32})[0-9a-f]{32}$/u)
        assert.notStrictEqual(traceIdOf(headers), parentTraceId)
      }
    )

    it.effect("has both attempts of a failover with the sources' codes, and is kept if its parent is not sampled", function* () {
      const collector = yield* Collector
      const service = yield* serviceSending("failover", { OTEL_TRACES_SAMPLER: "parentbased_always_off" })
      const key = yield* service.newKey
      const traceparent = `00-${parentTraceId.replace("4", "5")}-${parentSpanId}-00`
      const { headers, status } = yield* plainly(service.validate("DE100982001", { key, headers: { traceparent } }))
      assert.strictEqual(status, 200)
      const spans = yield* collector.trace("failover", traceIdOf(headers), route)
      const asked = spans.filter(({ kind, name }) => kind === "SPAN_KIND_CLIENT" && name.startsWith("POST /"))
      assert.deepStrictEqual(
        asked.map(({ attributes, name, status: spanStatus }) => [
          name,
          attributes?.["vatproof.outcome"],
          attributes?.["vatproof.source.code"],
          spanStatus?.code
        ]),
        [
          ["POST /check-vat-number", "unavailable", "SERVICE_UNAVAILABLE", "STATUS_CODE_ERROR"],
          ["POST /v1/abfrage", "answered", "evatr-2001", "STATUS_CODE_UNSET"]
        ]
      )
    })

    it.effect("is kept and marked as failed after a failure, and is not kept after a rejection", function* () {
      const collector = yield* Collector
      const service = yield* serviceSending("failing", { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" })
      const refused = yield* service.validate("nonsense")
      assert.strictEqual(refused.status, 400)
      const failed = yield* service.validate("ATU10999700")
      assert.strictEqual(failed.status, 503)
      const spans = yield* collector.trace("failing", traceIdOf(failed.headers), route)
      assert.strictEqual(one(spans, route).status?.code, "STATUS_CODE_ERROR")
      assert.deepInclude(one(spans, route).attributes, { "error.type": "503" })
      assert.isFalse(collector.spansOf("failing").some(({ traceId }) => traceId === traceIdOf(refused.headers)))
    })

    it.effect("has its id in X-Trace-Id and in the log's column even without a collector", function* () {
      const service = yield* RunningService.make()
      const { headers } = yield* service.validate("LU12345678")
      assert.include(yield* findTraceIds, traceIdOf(headers))
      const continued = yield* plainly(
        service.validate("LU12345678", { headers: { traceparent: `00-${parentTraceId}-${parentSpanId}-00` } })
      )
      assert.strictEqual(traceIdOf(continued.headers), parentTraceId)
    })
  }
)

layer(Layer.merge(RunningService.layerGround, Collector.layer), { excludeTestServices: true })(
  "the trace of background work",
  (it) => {
    it.effect("for a checkpoint is linked to the requests whose events are signed", function* () {
      const collector = yield* Collector
      const fs = yield* FileSystem.FileSystem
      const service = yield* serviceSending("signing", { ...Auditing.signing(yield* fs.makeTempDirectoryScoped()) })
      const { headers } = yield* plainly(service.validate("SI12345678"))
      const spans = yield* collector.trace("signing", traceIdOf(headers), route)
      const appended = spans.find(({ name }) => name.startsWith("EventStore.append"))
      const signed = yield* collector.until(() =>
        collector
          .spansOf("signing")
          .find(({ links, name }) => name === "Notary.sign" && links?.some(({ spanId }) => spanId === appended?.spanId))
      )
      assert.strictEqual(signed.kind, "SPAN_KIND_CONSUMER")
    })

    it.effect("for the delivery of a mail is a separate one, linked to the request that sent the mail", function* () {
      const collector = yield* Collector
      const { url } = yield* MailServer.MailServer
      const service = yield* serviceSending("mailing", { SMTP_URL: Redacted.value(url), MAIL_FROM: "no-reply@vat.example" })
      const { headers } = yield* plainly(People.signUpByBrowser(service, "reader@example.com"))
      yield* MailedTokens.tokensFor("reader@example.com", 1)
      const delivery = yield* collector.until(() => collector.spansOf("mailing").find(({ name }) => name === "Outbox.deliver"))
      const spans = yield* collector.trace("mailing", traceIdOf(headers), "POST /v1/auth/signup")
      assert.strictEqual(delivery.kind, "SPAN_KIND_CONSUMER")
      assert.notStrictEqual(delivery.traceId, traceIdOf(headers))
      const [link] = delivery.links ?? []
      assert.strictEqual(link?.traceId, traceIdOf(headers))
      assert.isTrue(spans.some(({ spanId }) => spanId === link?.spanId))
    })
  }
)

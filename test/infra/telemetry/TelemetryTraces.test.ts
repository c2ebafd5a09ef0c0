/** Tests that the trace of a request, as a collector receives it, follows OpenTelemetry's conventions. */
import { Effect, Layer, Schema } from "effect"
import { HttpClient } from "effect/http"
import * as Sandbox from "#test/support/Sandbox.ts"
import * as Auditing from "#test/support/Auditing.ts"
import { Collector, type ReceivedSpan, settingsFor } from "#test/support/Collector.ts"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const traced = Effect.gen(function* () {
  const { url } = yield* Collector
  const folder = yield* Auditing.temporaryFolder
  return yield* RunningService.start({
    ...settingsFor(url, "traced"),
    OTEL_TRACES_SAMPLER: "always_on",
    ...Auditing.signing(folder)
  })
})

const testLayer = Layer.effect(RunningService.RunningService, traced).pipe(
  Layer.provideMerge(Layer.merge(RunningService.layerGround, Collector.layer))
)

const one = (spans: ReadonlyArray<ReceivedSpan>, name: string) => {
  const found = spans.filter((span) => span.name === name)
  assert.strictEqual(found.length, 1, `${name} among ${spans.map((span) => span.name).join(", ")}`)
  return found[0] ?? assert.fail()
}

const traceIdOf = (headers: Readonly<Record<string, string | undefined>>) => headers["x-trace-id"] ?? assert.fail("no X-Trace-Id")

/** Turns off the tracing of Effect's HTTP client, which would replace the test's traceparent header. */
const plainly = Effect.provideService(HttpClient.TracerDisabledWhen, () => true)

const decodeValidation = Schema.decodeUnknownEffect(Schema.Struct({ validation_id: Schema.String }))
const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))

/** Returns a function that tells whether a span belongs to the trace of a submission and has the id of the submission. */
const isSubmission =
  (traceId: string, name: string, id: string) =>
  (span: ReceivedSpan): boolean =>
    span.traceId === traceId && span.attributes?.[name] === id

const route = "GET /v1/validate/{vat_id}"

const findTraceIds = Effect.gen(function* () {
  return (yield* Rows.all(
    { trace_id: Schema.NullOr(Schema.String) },
    (sql) => sql`SELECT encode(trace_id, 'hex') AS trace_id FROM vatproof.events ORDER BY position`
  )).map(({ trace_id }) => trace_id)
})

const parentTraceId = "4bf92f3577b34da6a3ce929d0e0e4736"
const parentSpanId = "00f067aa0ba902b7"

layer(testLayer, { excludeTestServices: true })("the trace of a request", (it) => {
  it.effect("has spans for the request, the look-up, the source call and the append, each under its parent", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    const { headers, status } = yield* plainly(
      service.validate("ATU12345678", { from: "203.0.113.7", query: { force_live: "true" } })
    )
    assert.strictEqual(status, 200)
    const spans = yield* collector.trace("traced", traceIdOf(headers), route)
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
  })

  it.effect("continues the caller's trace", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    const traceparent = `00-${parentTraceId}-${parentSpanId}-01`
    const { headers } = yield* plainly(service.validate("BE0123456789", { headers: { traceparent, tracestate: "vendor=1" } }))
    assert.strictEqual(headers["x-trace-id"], parentTraceId)
    const spans = yield* collector.trace("traced", parentTraceId, route)
    assert.strictEqual(one(spans, route).parentSpanId, parentSpanId)
    assert.strictEqual(one(spans, "EventStore.append").parentSpanId, one(spans, route).spanId)
  })

  it.effect("has two spans for a cached answer, and a link to the span of the group commit that stored its event", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
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
    const { name } = yield* TestDatabase.TestDatabase
    assert.deepInclude(batch.attributes, { "db.namespace": name, "server.address": "127.0.0.1" })
    assert.isEmpty(
      collector.spansOf("traced").filter(({ traceId, spanId }) => traceId === batch.traceId && spanId !== batch.spanId)
    )
  })

  it.effect("names the span of each SQL statement by operation and target", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
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

  it.effect.each(["00-xyz", `00-${"0".repeat(32)}-${parentSpanId}-01`, `ff-${parentTraceId}-${parentSpanId}-01`, ""])(
    "is a new trace if the request has the invalid traceparent %j",
    function* (traceparent) {
      const service = yield* RunningService.RunningService
      const { headers } = yield* plainly(service.get("/health", { headers: { traceparent } }))
      assert.match(traceIdOf(headers), /^(?!0{32})[0-9a-f]{32}$/u)
      assert.notStrictEqual(traceIdOf(headers), parentTraceId)
    }
  )

  it.effect("is exported after a failover or a failure even if it is not sampled, but not after a rejection", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.start({
      ...settingsFor(collector.url, "kept"),
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0"
    })
    const key = yield* service.newKey
    const failedOver = yield* plainly(service.validate("DE100982001", { key }))
    assert.strictEqual(failedOver.status, 200)
    const attempts = (yield* collector.trace("kept", traceIdOf(failedOver.headers), route)).filter(
      ({ kind, name }) => kind === "SPAN_KIND_CLIENT" && name.startsWith("POST /")
    )
    assert.deepStrictEqual(
      attempts.map(({ attributes, name, status }) => [
        name,
        attributes?.["vatproof.outcome"],
        attributes?.["vatproof.source.code"],
        status?.code
      ]),
      [
        ["POST /check-vat-number", "unavailable", "SERVICE_UNAVAILABLE", "STATUS_CODE_ERROR"],
        ["POST /v1/abfrage", "answered", "evatr-2001", "STATUS_CODE_UNSET"]
      ]
    )
    const refused = yield* service.validate("nonsense")
    assert.strictEqual(refused.status, 400)
    const failed = yield* service.validate("ATU10999700")
    assert.strictEqual(failed.status, 503)
    const root = one(yield* collector.trace("kept", traceIdOf(failed.headers), route), route)
    assert.strictEqual(root.status?.code, "STATUS_CODE_ERROR")
    assert.deepInclude(root.attributes, { "error.type": "503" })
    assert.isFalse(collector.spansOf("kept").some(({ traceId }) => traceId === traceIdOf(refused.headers)))
  })

  it.effect("is linked from the trace of the checkpoint that signs its events", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    const { headers } = yield* plainly(service.validate("SI12345678"))
    const spans = yield* collector.trace("traced", traceIdOf(headers), route)
    const appended = spans.find(({ name }) => name.startsWith("EventStore.append"))
    const signed = yield* collector.until(() =>
      collector
        .spansOf("traced")
        .find(({ links, name }) => name === "Notary.sign" && links?.some(({ spanId }) => spanId === appended?.spanId))
    )
    assert.strictEqual(signed.kind, "SPAN_KIND_CONSUMER")
  })

  it.effect("is linked from the separate trace of the mail delivery", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    const { headers } = yield* plainly(People.signUpByBrowser(service, "new.user@example.com"))
    yield* MailedTokens.tokensFor("new.user@example.com", 1)
    const delivery = yield* collector.until(() => collector.spansOf("traced").find(({ name }) => name === "Outbox.deliver"))
    const spans = yield* collector.trace("traced", traceIdOf(headers), "POST /v1/auth/signup")
    assert.strictEqual(delivery.kind, "SPAN_KIND_CONSUMER")
    assert.notStrictEqual(delivery.traceId, traceIdOf(headers))
    const [link] = delivery.links ?? []
    assert.strictEqual(link?.traceId, traceIdOf(headers))
    assert.isTrue(spans.some(({ spanId }) => spanId === link?.spanId))
  })

  it.effect("is linked from the separate trace of an attempt to answer the accepted validation", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const { body, headers } = yield* plainly(
      service.post("/v1/validations", { vat_id: "ATU10550051" }, { key, headers: { prefer: "respond-async" } })
    )
    const attempt = yield* collector.until(() => collector.spansOf("traced").find(({ name }) => name === "TaskEngine.attempt"))
    assert.strictEqual(attempt.kind, "SPAN_KIND_CONSUMER")
    assert.isTrue(attempt.links?.some(({ traceId }) => traceId === traceIdOf(headers)))
    const spans = yield* collector.trace("traced", attempt.traceId, "TaskEngine.attempt")
    assert.isTrue(spans.some(({ name }) => name === "EventStore.append"))
    const { validation_id } = yield* decodeValidation(body)
    assert.deepInclude(attempt.attributes, {
      "vatproof.validation_id": validation_id,
      "vatproof.member_state": "AT",
      "vatproof.outcome": "closed"
    })
    assert.strictEqual(Number(attempt.attributes?.["vatproof.attempt"]), 1)
    assert.notInclude(JSON.stringify(attempt), "U10550051")
    assert.isTrue(collector.spansOf("traced").some(isSubmission(traceIdOf(headers), "vatproof.validation_id", validation_id)))
  })

  it.effect("is linked from the separate trace of each attempt to answer an item of the uploaded batch", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    const sandbox = yield* Sandbox.Sandbox
    const key = yield* service.newKey
    yield* sandbox.configure({ vies_unavailable_member_states: ["LT"] })
    const items = [{ custom_id: "a", vat_id: "LT123456789" }]
    const { body, headers } = yield* plainly(service.post("/v1/batches", { items }, { key }))
    const { batch_id } = yield* decodeBatch(body)
    const attemptOf = (outcome: string) =>
      collector.until(() =>
        collector
          .spansOf("traced")
          .find(({ attributes }) => attributes?.["vatproof.batch_id"] === batch_id && attributes["vatproof.outcome"] === outcome)
      )
    const first = yield* attemptOf("waiting")
    yield* sandbox.configure({ vies_unavailable_member_states: [] })
    const last = yield* attemptOf("closed")
    assert.strictEqual(Number(first.attributes?.["vatproof.attempt"]), 1)
    assert.isAbove(Number(last.attributes?.["vatproof.attempt"]), 1)
    assert.strictEqual(first.attributes?.["vatproof.validation_id"], last.attributes?.["vatproof.validation_id"])
    for (const { links } of [first, last]) assert.isTrue(links?.some(({ traceId }) => traceId === traceIdOf(headers)))
    assert.isTrue(collector.spansOf("traced").some(isSubmission(traceIdOf(headers), "vatproof.batch_id", batch_id)))
  })
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a trace without a collector", (it) => {
  it.effect("has its id in X-Trace-Id and in the event", function* () {
    const service = yield* RunningService.RunningService
    const { headers } = yield* service.validate("LU12345678")
    assert.include(yield* findTraceIds, traceIdOf(headers))
    const continued = yield* plainly(
      service.validate("LU12345678", { headers: { traceparent: `00-${parentTraceId}-${parentSpanId}-00` } })
    )
    assert.strictEqual(traceIdOf(continued.headers), parentTraceId)
  })
})

import type { ReadableSpan } from "@opentelemetry/sdk-trace-base"
import { resourceFromAttributes } from "@opentelemetry/resources"
import { SpanStatusCode } from "@opentelemetry/api"
import { Effect, Tracer } from "effect"
import { SqlError, UniqueViolation } from "effect/sql/SqlError"
import * as ExportedSpan from "#infra/telemetry/ExportedSpan.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"
import * as SpanTracer from "#infra/telemetry/SpanTracer.ts"
import type { SamplerSettings } from "#infra/telemetry/TelemetrySettings.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const always: SamplerSettings = { name: "always_on", ratio: 1 }
const onlyFailures: SamplerSettings = { name: "traceidratio", ratio: 0 }

/** Runs an effect with the tracer and returns the exported spans, one group per export. */
const exportedBy = Effect.fnUntraced(function* <A, E>(effect: Effect.Effect<A, E>, sampler = onlyFailures) {
  const groups: Array<ReadonlyArray<ReadableSpan>> = []
  const exported = ExportedSpan.make(Redaction.make([]))
  const tracer = yield* SpanTracer.make({
    sampler,
    resource: resourceFromAttributes({}),
    emit: (spans) => groups.push(spans.map(exported))
  })
  yield* Effect.exit(Effect.provideService(effect, Tracer.Tracer, tracer))
  return groups
})

const server = { kind: "server", root: true } as const
const served = (status: number) => Effect.annotateCurrentSpan("http.response.status_code", status)
const namesOf = (groups: ReadonlyArray<ReadonlyArray<ReadableSpan>>) => groups.map((spans) => spans.map(({ name }) => name))

describe("the tracer", () => {
  it.effect("exports a sampled trace as a whole at its end, children before parents", function* () {
    const inner = Effect.withSpan(Effect.void, "inner")
    const groups = yield* exportedBy(Effect.withSpan(Effect.andThen(inner, served(200)), "request", server), always)
    assert.deepStrictEqual(namesOf(groups), [["inner", "request"]])
    const [child, root] = groups[0] ?? []
    assert.strictEqual(child?.parentSpanContext?.spanId, root?.spanContext().spanId)
    assert.strictEqual(child?.spanContext().traceId, root?.spanContext().traceId)
    assert.match(root?.spanContext().traceId ?? "", /^[0-9a-f]{32}$/u)
  })

  it.effect.each([
    ["a status of 500 and above", served(503), true],
    ["a refusal", served(404), false],
    ["a success", served(200), false],
    ["a defect in any span", Effect.withSpan(Effect.die("x"), "inner"), true],
    ["a typed failure in a child span", Effect.ignore(Effect.withSpan(Effect.fail(new Error("x")), "inner")), false],
    [
      "a failed attempt at a source",
      Effect.withSpan(Effect.annotateCurrentSpan("error.type", "timeout"), "s", { kind: "client" }),
      true
    ],
    ["a failover", Effect.annotateCurrentSpan("vatproof.failover", true), true],
    ["a caller that disconnected", Effect.interrupt, false]
  ] as const)("exports an unsampled trace only after a failure or failover; the trace has %s", function* ([, within, kept]) {
    const groups = yield* exportedBy(Effect.withSpan(within, "request", server))
    assert.strictEqual(groups.length, kept ? 1 : 0)
  })

  it.effect("exports the unsampled trace of a failed request with the trace id and span id of that request", function* () {
    let known = ""
    const failing = Effect.gen(function* () {
      const { sampled, spanId, traceId } = yield* Effect.currentSpan
      known = `${traceId} ${spanId} ${sampled}`
      yield* Effect.withSpan(Effect.void, "inner")
      yield* served(503)
    })
    const [spans = []] = yield* exportedBy(Effect.withSpan(failing, "request", server))
    const [child, root] = spans
    assert.strictEqual(`${root?.spanContext().traceId} ${root?.spanContext().spanId} false`, known)
    assert.strictEqual(child?.spanContext().traceId, root?.spanContext().traceId)
    assert.strictEqual(child?.parentSpanContext?.spanId, root?.spanContext().spanId)
    assert.notStrictEqual(child?.spanContext().spanId, root?.spanContext().spanId)
  })

  it.effect("exports at most 50 failed traces a second, and none with the sampler always_off", function* () {
    const many = Effect.replicateEffect(Effect.withSpan(served(503), "request", server), 500)
    assert.strictEqual((yield* exportedBy(many)).length, 50)
    assert.strictEqual((yield* exportedBy(many, { name: "always_off", ratio: 0 })).length, 0)
  })

  it.effect.each([
    ["parentbased_always_off", true, 1],
    ["parentbased_always_on", false, 0],
    ["parentbased_traceidratio", true, 1],
    ["traceidratio", true, 0],
    ["always_on", false, 1]
  ] as const)("with the sampler %s and a parent whose sampled flag is %s exports %d traces", function* ([name, sampled, count]) {
    const parent = Tracer.externalSpan({ traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", sampled })
    const request = Effect.withSpan(served(200), "request", { kind: "server", parent })
    const groups = yield* exportedBy(request, { name, ratio: 0 })
    assert.strictEqual(groups.length, count)
    for (const [span] of groups) {
      assert.strictEqual(span?.spanContext().traceId, parent.traceId)
      assert.strictEqual(span?.parentSpanContext?.spanId, parent.spanId)
    }
  })

  it.effect("exports no spans outside of requests and jobs", function* () {
    const outside = Effect.withSpan(Effect.withSpan(Effect.void, "query", { kind: "client" }), "poll")
    assert.deepStrictEqual(yield* exportedBy(outside, always), [])
  })

  it.effect("exports the trace of a job only if the job is linked to a sampled trace", function* () {
    const link = (sampled: boolean) => ({
      span: Tracer.externalSpan({ traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", sampled }),
      attributes: {}
    })
    const job = (sampled: boolean) =>
      Effect.withSpan(Effect.void, "job", { kind: "consumer", root: true, links: [link(sampled)] })
    assert.strictEqual((yield* exportedBy(job(true))).length, 1)
    assert.strictEqual((yield* exportedBy(job(false))).length, 0)
  })

  it.effect("exports only allowed attributes, truncated to 200 characters", function* () {
    const attributes = {
      "http.route": "/v1/x",
      "url.path": "/v1/validate/DE123456789",
      "client.address": "203.0.113.7",
      "user_agent.original": "me",
      "db.query.text": "SELECT name FROM vatproof.accounts WHERE email = 'x@example.com'",
      "vatproof.outcome": "x".repeat(5_000)
    }
    const groups = yield* exportedBy(Effect.withSpan(Effect.void, "request", { ...server, attributes }), always)
    const recorded = groups[0]?.[0]?.attributes
    assert.deepStrictEqual(Object.keys(recorded ?? {}), [
      "http.route",
      "vatproof.outcome",
      "db.operation.name",
      "db.collection.name"
    ])
    assert.strictEqual(String(recorded?.["vatproof.outcome"]).length, 200)
  })

  it.effect("labels a database error with PostgreSQL's code", function* () {
    const reason = new UniqueViolation({ cause: { code: "23505" }, constraint: "accounts_email" })
    const failing = Effect.withSpan(Effect.fail(new SqlError({ reason })), "accounts", { kind: "client" })
    const groups = yield* exportedBy(Effect.withSpan(Effect.ignore(failing), "request", server))
    assert.strictEqual(groups[0]?.[0]?.attributes["error.type"], "23505")
  })

  it.effect("labels a failure with its type, without its message", function* () {
    const groups = yield* exportedBy(Effect.withSpan(Effect.die(new TypeError("of DE123456789")), "request", server))
    assert.strictEqual(groups[0]?.[0]?.attributes["error.type"], "TypeError")
    assert.strictEqual(groups[0]?.[0]?.status.code, SpanStatusCode.ERROR)
    assert.notInclude(JSON.stringify(groups), "DE123456789")
  })

  it.effect("limits the spans of a trace, and always keeps the root span", function* () {
    const many = Effect.replicateEffect(Effect.withSpan(Effect.void, "inner"), 1_000)
    const groups = yield* exportedBy(Effect.withSpan(many, "request", server), always)
    assert.strictEqual(groups[0]?.length, 201)
    assert.strictEqual(groups[0]?.at(-1)?.name, "request")
  })
})

import { Duration, Effect, Option, Redacted } from "effect"
import * as AppConfig from "#infra/config/AppConfig.ts"
import * as KnownSecrets from "#infra/security/KnownSecrets.ts"
import * as Telemetry from "#infra/telemetry/Telemetry.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const read = (env: Readonly<Record<string, string>>) => Effect.map(AppConfig.read(env), ({ telemetry }) => telemetry)

describe("the OTEL_* variables", () => {
  it.effect("are optional: by default nothing is exported, and the sampling ratio is 5 %", function* () {
    const settings = yield* read({})
    assert.isFalse(Telemetry.isOn(settings))
    assert.deepStrictEqual(settings.sampler, { name: "parentbased_traceidratio", ratio: 0.05 })
  })

  it.effect("can set the endpoints of traces, metrics and logs with one variable", function* () {
    const { logs, metrics, traces } = yield* read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/" })
    const urls = [traces, metrics, logs].map((target) => Option.map(target, ({ url }) => url))
    assert.deepStrictEqual(urls, [
      Option.some("http://collector:4318/v1/traces"),
      Option.some("http://collector:4318/v1/metrics"),
      Option.some("http://collector:4318/v1/logs")
    ])
    assert.deepStrictEqual(
      Option.map(traces, ({ compression, protocol, timeout }) => [protocol, compression, Duration.toMillis(timeout)]),
      Option.some(["http/protobuf", "none", 10_000])
    )
  })

  it.effect(
    "that concern one signal override those for all signals; the endpoint URL of one signal is used without an appended path",
    function* () {
      const settings = yield* read({
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example/in",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/protobuf",
        OTEL_EXPORTER_OTLP_HEADERS: "api-key=s%3Decret,x-team=a",
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: "api-key=other",
        OTEL_LOGS_EXPORTER: "none",
        OTEL_SERVICE_NAME: "mine",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,service.namespace=tax"
      })
      const traces = Option.getOrThrow(settings.traces)
      const metrics = Option.getOrThrow(settings.metrics)
      assert.strictEqual(traces.url, "https://traces.example/in")
      assert.deepStrictEqual([traces.protocol, metrics.protocol], ["http/json", "http/protobuf"])
      assert.deepStrictEqual(Object.values(traces.headers).map(Redacted.value), ["other"])
      assert.deepStrictEqual(Object.values(metrics.headers).map(Redacted.value), ["s=ecret", "a"])
      assert.isTrue(Option.isNone(settings.logs))
      assert.deepStrictEqual(settings.resource, { "deployment.environment.name": "test", "service.namespace": "tax" })
    }
  )

  it.effect("turn all exports off if OTEL_SDK_DISABLED is true", function* () {
    assert.isFalse(Telemetry.isOn(yield* read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_SDK_DISABLED: "true" })))
  })

  it.effect("sample every trace if only a sampler is set, and use parentbased_traceidratio if only a ratio is set", function* () {
    assert.deepStrictEqual((yield* read({ OTEL_TRACES_SAMPLER: "traceidratio" })).sampler, { name: "traceidratio", ratio: 1 })
    assert.deepStrictEqual((yield* read({ OTEL_TRACES_SAMPLER_ARG: "0.5" })).sampler, {
      name: "parentbased_traceidratio",
      ratio: 0.5
    })
  })

  it.effect.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"],
    ["OTEL_TRACES_SAMPLER", "sometimes"],
    ["OTEL_TRACES_SAMPLER_ARG", "7"],
    ["OTEL_EXPORTER_OTLP_HEADERS", "no-pair"],
    ["LOG_LEVEL", "loud"],
    ["LOG_FORMAT", "xml"],
    ["ADMIN_PORT", "70000"]
  ] as const)("reject %s=%s with an error that contains the name but not the value", function* ([name, value]) {
    const { message } = yield* Effect.flip(read({ [name]: value }))
    assert.include(message, name)
    assert.notInclude(message, value)
  })

  it.effect("pass their secrets to the redaction of logs, as all other settings do", function* () {
    const config = yield* AppConfig.read({
      DATABASE_URL: "postgresql://u:database%2Fsecret@db/v",
      SMTP_URL: "smtp://u:smtp-secret@mail",
      JWT_SECRET: "a".repeat(32),
      NOTARY_KEY: "PRIVATE+KEY+x+1+y",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=collector-secret"
    })
    const known = KnownSecrets.make(config).map(Redacted.value)
    for (const secret of [
      "database%2Fsecret",
      "database/secret",
      "smtp-secret",
      "a".repeat(32),
      "PRIVATE+KEY+x+1+y",
      "collector-secret"
    ]) {
      assert.include(known, secret)
    }
  })
})

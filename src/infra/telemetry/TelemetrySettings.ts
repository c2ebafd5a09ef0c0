/**
 * The standard `OTEL_*` variables (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ and
 * https://opentelemetry.io/docs/specs/otel/protocol/exporter/, read 2026-11) that this service supports. Without an endpoint
 * nothing is exported. Metrics are always available at /metrics.
 */
import { Config, Duration, Option, Record, Redacted, Schema } from "effect"

/** The target and protocol of one signal. `headers` may contain the collector's secrets. */
export interface ExportTarget {
  readonly url: string
  readonly headers: Readonly<Record<string, Redacted.Redacted>>
  readonly protocol: Protocol
  readonly compression: "gzip" | "none"
  /** Timeout of one export, including retries. */
  readonly timeout: Duration.Duration
}

const Protocol = Schema.Literals(["http/protobuf", "http/json"])
export type Protocol = typeof Protocol.Type

/** The sampler, which decides at the start of a trace. `ratio` is the share of sampled traces, 0 to 1. */
export interface SamplerSettings {
  readonly name: SamplerName
  readonly ratio: number
}

const SamplerName = Schema.Literals([
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
])
export type SamplerName = typeof SamplerName.Type

/**
 * The default sampler: it samples one trace in twenty, unless the caller's trace context already has a decision. A configured
 * sampler without a ratio samples all traces, as OpenTelemetry specifies.
 */
const usualSampler: SamplerSettings = { name: "parentbased_traceidratio", ratio: 0.05 }

const HttpUrl = Schema.String.check(
  Schema.makeFilter(
    (text: string) => (/^https?:\/\//u.test(text) && URL.canParse(text)) || "Expected a URL that starts with http:// or https://"
  )
)
const Ratio = Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const Millis = Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 86_400_000 }))
const Exporter = Schema.Literals(["otlp", "none"])
const Compression = Schema.Literals(["gzip", "none"])

/** `key1=value1,key2=value2`, values percent-encoded: the form of a W3C baggage header. */
const Pairs = Schema.String.check(
  Schema.makeFilter((text: string) => Option.isSome(pairsOf(text)) || "Expected key=value, separated by commas")
)

const pairsOf = (text: string): Option.Option<Record<string, string>> => {
  const pairs: Record<string, string> = {}
  for (const pair of text.split(",").filter((part) => part.trim() !== "")) {
    const [, name = "", value = ""] = /^\s*([^\s=]+)\s*=(.*)$/su.exec(pair) ?? []
    const decoded = decodePercent(value.trim())
    if (name === "" || Option.isNone(decoded)) return Option.none()
    pairs[name] = decoded.value
  }
  return Option.some(pairs)
}

const decodePercent = Schema.decodeUnknownOption(Schema.StringFromUriComponent)

const pairs = (name: string) =>
  Config.schema(Pairs, name).pipe(Config.map((text) => Option.getOrElse(pairsOf(text), (): Record<string, string> => ({}))))

/** Reads the variable of one signal, otherwise the variable for all signals. */
const ofSignal = <A>(make: (name: string) => Config.Config<A>, signal: string, name: string) =>
  Config.all({
    own: Config.option(make(`OTEL_EXPORTER_OTLP_${signal}_${name}`)),
    common: Config.option(make(`OTEL_EXPORTER_OTLP_${name}`))
  }).pipe(Config.map(({ common, own }) => Option.firstSomeOf([own, common])))

const target = (signal: "TRACES" | "METRICS" | "LOGS"): Config.Config<Option.Option<ExportTarget>> =>
  Config.all({
    disabled: Config.Boolean("OTEL_SDK_DISABLED").pipe(Config.withDefault(false)),
    exporter: Config.schema(Exporter, `OTEL_${signal}_EXPORTER`).pipe(Config.withDefault("otlp" as const)),
    own: Config.schema(HttpUrl, `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`).pipe(Config.option),
    base: Config.schema(HttpUrl, "OTEL_EXPORTER_OTLP_ENDPOINT").pipe(Config.option),
    headers: ofSignal(pairs, signal, "HEADERS"),
    protocol: ofSignal((name) => Config.schema(Protocol, name), signal, "PROTOCOL"),
    compression: ofSignal((name) => Config.schema(Compression, name), signal, "COMPRESSION"),
    timeoutMs: ofSignal((name) => Config.schema(Millis, name), signal, "TIMEOUT")
  }).pipe(
    Config.map(({ base, compression, disabled, exporter, headers, own, protocol, timeoutMs }) => {
      const path = `/v1/${signal.toLowerCase()}`
      const below = Option.map(base, (url) => `${url.replace(/\/+$/u, "")}${path}`)
      return Option.firstSomeOf([own, below]).pipe(
        Option.filter(() => !disabled && exporter === "otlp"),
        Option.map((url) => ({
          url,
          headers: Record.map(
            Option.getOrElse(headers, () => ({})),
            (value) => Redacted.make(value)
          ),
          protocol: Option.getOrElse(protocol, () => "http/protobuf" as const),
          compression: Option.getOrElse(compression, () => "none" as const),
          timeout: Duration.millis(Option.getOrElse(timeoutMs, () => 10_000))
        }))
      )
    })
  )

/** Decodes all supported variables. */
export const telemetrySettings = Config.all({
  traces: target("TRACES"),
  metrics: target("METRICS"),
  logs: target("LOGS"),
  sampler: Config.all({
    name: Config.schema(SamplerName, "OTEL_TRACES_SAMPLER").pipe(Config.option),
    ratio: Config.schema(Ratio, "OTEL_TRACES_SAMPLER_ARG").pipe(Config.option)
  }).pipe(Config.map(({ name, ratio }) => samplerOf(name, ratio))),
  metricInterval: Config.schema(Millis, "OTEL_METRIC_EXPORT_INTERVAL").pipe(
    Config.withDefault(60_000),
    Config.map((millis) => Duration.millis(millis))
  ),
  batchDelay: Config.schema(Millis, "OTEL_BSP_SCHEDULE_DELAY").pipe(
    Config.withDefault(5_000),
    Config.map((millis) => Duration.millis(millis))
  ),
  serviceName: Config.NonEmptyString("OTEL_SERVICE_NAME").pipe(Config.option),
  resource: pairs("OTEL_RESOURCE_ATTRIBUTES").pipe(
    Config.option,
    Config.map((found): Readonly<Record<string, string>> => Option.getOrElse(found, () => ({})))
  )
})

const samplerOf = (name: Option.Option<SamplerName>, ratio: Option.Option<number>): SamplerSettings =>
  Option.match(name, {
    onNone: () => ({ ...usualSampler, ratio: Option.getOrElse(ratio, () => usualSampler.ratio) }),
    onSome: (named) => ({ name: named, ratio: Option.getOrElse(ratio, () => 1) })
  })

export type TelemetrySettings = Config.Success<typeof telemetrySettings>

/** The metrics for Prometheus and for a collector have conventional names and units, few series and no personal data. */
import { Context, Effect, Layer, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { Collector, settingsFor } from "#test/support/Collector.ts"
import { merged } from "#infra/workers/WorkersAdmin.ts"
import * as Promtool from "#test/support/Promtool.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const readMetrics = Effect.fnUntraced(function* (
  port: number,
  accept = "text/plain",
  contentType = /^text\/plain; version=0\.0\.4/u
) {
  const http = yield* HttpClient.HttpClient
  const response = yield* http.get(`http://127.0.0.1:${port}/metrics`, { headers: { accept } })
  assert.match(response.headers["content-type"] ?? "", contentType)
  return yield* response.text
})

/** The sum of the series of a metric whose labels match. */
const valueOf = (text: string, name: string, labels: RegExp = /(?:)/u) =>
  text
    .split("\n")
    .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && labels.test(line))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)

/** Makes calls that use up a quota of two, hit the cache, cause a failover, and fail in an outage of both sources. */
const trafficOf = Effect.fnUntraced(function* (service: RunningService.Replica) {
  const key = yield* service.newKey
  const other = yield* service.newKey
  const asked = [
    { vatId: "ATU12345678", key, expected: 200 },
    { vatId: "ATU12345678", key, expected: 200 },
    { vatId: "ATU12345678", key, expected: 402 },
    { vatId: "DE100982001", key: other, expected: 200 },
    { vatId: "ATU10999700", key: other, expected: 503 },
    { vatId: "nonsense", key: other, expected: 400 }
  ]
  for (const { expected, key: used, vatId } of asked) {
    assert.strictEqual((yield* service.validate(vatId, { key: used })).status, expected, vatId)
  }
})

const expectedSeries: ReadonlyArray<readonly [name: string, labels: RegExp, atLeast: number]> = [
  ["http_server_request_duration_seconds_count", /http_route="\/v1\/validate\/\{vat_id\}",http_response_status_code="200"/u, 3],
  ["http_server_request_duration_seconds_count", /http_response_status_code="503",url_scheme="http",error_type="503"/u, 1],
  ["http_server_request_duration_seconds_count", /http_response_status_code="402"/u, 1],
  [
    "http_client_request_duration_seconds_count",
    /http_request_method="POST",server_address="127\.0\.0\.1",server_port="\d+"/u,
    3
  ],
  ["vatproof_cache_lookups_total", /outcome="hit"/u, 1],
  ["vatproof_cache_lookups_total", /outcome="miss"/u, 3],
  ["vatproof_quota_refusals_total", /plan="free"/u, 1],
  ["vatproof_failovers_total", /(?:)/u, 1],
  ["vatproof_source_attempts_total", /source="vies",vatproof_outcome="unavailable"/u, 2],
  ["vatproof_source_attempts_total", /source="bzst",vatproof_outcome="answered"/u, 1],
  ["vatproof_append_batch_size_count", /(?:)/u, 5],
  ["vatproof_append_batches_total", /way="whole"/u, 1],
  ["vatproof_append_wait_duration_seconds_count", /(?:)/u, 5],
  ["vatproof_append_duration_seconds_count", /(?:)/u, 5],
  ["db_client_operation_duration_seconds_count", /db_system_name="postgresql"/u, 5],
  ["db_client_connection_max", /(?:)/u, 10],
  ["vatproof_db_connections", /(?:)/u, 1],
  ["vatproof_database_available", /(?:)/u, 1],
  ["process_memory_usage_bytes", /(?:)/u, 1_000_000],
  ["nodejs_eventloop_delay_p99_seconds", /(?:)/u, 0],
  ["http_server_request_duration_seconds_count", /status_code="200".*vatproof_served="live"/u, 2],
  ["http_server_request_duration_seconds_bucket", /le="40"/u, 3],
  ["target_info", /service_name="measured",service_version="[\d.]+",service_instance_id="[\da-f-]{36}"/u, 1],
  ["vatproof_build_info", /version="[\d.]+",process_runtime_version="v\d+/u, 1],
  ["process_start_time_seconds", /(?:)/u, 1_700_000_000]
]

/** Gauges that must be present. Their values vary, so the test does not check them. */
const gauges = [
  "vatproof_projection_lag",
  "vatproof_notary_lag",
  "vatproof_outbox_age_seconds",
  "vatproof_tasks_age_seconds",
  "vatproof_tasks_open",
  "vatproof_source_state",
  "vatproof_source_breaker_open",
  "vatproof_db_queries_active",
  "http_server_active_requests"
]

const units: Readonly<Record<string, string>> = {
  "http.server.request.duration": "s",
  "http.server.active_requests": "{request}",
  "http.client.request.duration": "s",
  "db.client.operation.duration": "s",
  "vatproof.append.batch.size": "{command}",
  "vatproof.append.batches": "{batch}",
  "vatproof.append.wait.duration": "s",
  "vatproof.cache.lookups": "{lookup}",
  "vatproof.notary.lag": "{event}",
  "vatproof.outbox.age": "s",
  "vatproof.tasks.age": "s",
  "process.memory.usage": "By"
}

/** The admin port of the service. */
class AdminPort extends Context.Service<AdminPort, number>()("vatproof/test/AdminPort") {}

const measured = Effect.gen(function* () {
  const { url } = yield* Collector
  const port = yield* AdminPort
  return yield* RunningService.start({
    ...settingsFor(url, "measured"),
    OTEL_TRACES_SAMPLER: "always_on",
    ADMIN_PORT: String(port),
    PLAN_FREE_PER_MONTH: "2"
  })
})

const testLayer = Layer.effect(RunningService.RunningService, measured).pipe(
  Layer.provideMerge(Layer.effect(AdminPort, RunningService.freePort)),
  Layer.provideMerge(Layer.merge(RunningService.layerSharedGround, Collector.layer))
)

layer(testLayer, { excludeTestServices: true })("metrics", (it) => {
  it.effect("have all counters from the start", function* () {
    const text = yield* readMetrics(yield* AdminPort)
    for (const series of [
      'vatproof_append_batches_total{vatproof_append_way="each"}',
      'vatproof_cache_lookups_total{vatproof_cache_outcome="stale"}',
      'vatproof_evidence_altered_total{vatproof_evidence="scrub"}',
      "vatproof_failovers_total",
      'vatproof_quota_refusals_total{vatproof_plan="enterprise"}',
      'vatproof_source_attempts_total{vatproof_source="bzst",vatproof_outcome="malformed"}',
      'vatproof_tasks_attempts_total{vatproof_outcome="failed"}',
      'vatproof_telemetry_exports_total{vatproof_telemetry_signal="logs",vatproof_outcome="lost"}',
      'vatproof_verdicts_total{vatproof_verdict="none",vatproof_source="none"}'
    ]) {
      assert.include(text, `\n${series} `)
    }
  })

  // This test runs first, because the outages in the other tests pause the task engine.
  it.effect(
    "count a failed attempt to answer an accepted validation as an attempt, not as a response without a verdict",
    function* () {
      const port = yield* AdminPort
      const service = yield* RunningService.RunningService
      const key = yield* service.newKey
      const before = yield* readMetrics(port)
      const asked = { vat_id: vatIdEnding("FI", "999301") }
      const accepted = yield* service.post("/v1/validations", asked, { key, headers: { prefer: "respond-async" } })
      assert.strictEqual(accepted.status, 202)
      const location = accepted.headers["location"] ?? assert.fail("no Location")
      yield* Effect.repeat(service.get(location, { key }), {
        schedule: Schedule.spaced("50 millis"),
        until: ({ text }) => text.includes('"last_failure":{')
      })
      const after = yield* readMetrics(port)
      const added = (name: string, labels: RegExp) => valueOf(after, name, labels) - valueOf(before, name, labels)
      assert.isAtLeast(added("vatproof_tasks_attempts_total", /outcome="waiting"/u), 1)
      assert.strictEqual(added("vatproof_verdicts_total", /verdict="none"/u), 0)
      assert.strictEqual(added("vatproof_cache_lookups_total", /outcome="miss"/u), 0)
    }
  )

  it.effect("tell submissions that wait for a source from those that do not", function* () {
    const port = yield* AdminPort
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const before = yield* readMetrics(port)
    const submit = (vat_id: string, headers: Record<string, string>) =>
      service.post("/v1/validations", { vat_id }, { key, headers })
    assert.strictEqual((yield* submit("ATU10550991", { prefer: "respond-async" })).status, 202)
    assert.strictEqual((yield* submit("ATU10550992", { prefer: "respond-async, wait=20" })).status, 200)
    const after = yield* readMetrics(port)
    const name = "http_server_request_duration_seconds_count"
    const added = (labels: RegExp) => valueOf(after, name, labels) - valueOf(before, name, labels)
    assert.strictEqual(added(/"\/v1\/validations",http_response_status_code="202",url_scheme="http"\}/u), 1)
    assert.strictEqual(added(/"\/v1\/validations",http_response_status_code="200".*vatproof_served="live"/u), 1)
  })

  it.effect("are exposed to Prometheus in a valid format and without personal data", function* () {
    const port = yield* AdminPort
    const service = yield* RunningService.RunningService
    yield* trafficOf(service)
    const text = yield* readMetrics(port)
    for (const [name, labels, atLeast] of expectedSeries) assert.isAtLeast(valueOf(text, name, labels), atLeast, name)
    for (const name of gauges) assert.match(text, new RegExp(`^# TYPE ${name} gauge$`, "mu"))
    assert.notMatch(text, /ATU12345678|DE100982001|svc_live|nonsense|unit=/u)
    const verdict = yield* Promtool.checkMetrics(text)
    if (verdict !== null) assert.strictEqual(verdict, "")
  })

  it.effect(
    "include the id of the newest sampled trace in each histogram bucket for clients that accept OpenMetrics",
    function* () {
      const port = yield* AdminPort
      const service = yield* RunningService.RunningService
      const { headers } = yield* service.validate("ATU12345678")
      const accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
      const text = yield* readMetrics(port, accept, /^application\/openmetrics-text; version=1\.0\.0/u)
      const exemplar = new RegExp(
        `http_server_request_duration_seconds_bucket.* # \\{trace_id="${headers["x-trace-id"]}"\\} [\\d.e-]+ \\d+`,
        "u"
      )
      assert.match(text, exemplar)
      assert.match(text, /^# TYPE vatproof_cache_lookups counter$/mu)
      assert.match(text, /^vatproof_cache_lookups_total\{/mu)
      assert.match(text, /\n# EOF\n$/u)
      const ofWorkers = merged([
        ["1", text],
        ["2", text]
      ])
      assert.match(ofWorkers, /^http_server_request_duration_seconds_bucket\{worker="2",.*\} \d+ # \{trace_id=/mu)
      assert.lengthOf([...ofWorkers.matchAll(/^# TYPE target info$/gmu)], 1)
      assert.notInclude(ofWorkers, "# EOF")
      assert.notInclude(yield* readMetrics(port), "trace_id")
    }
  )

  it.effect("arrive at a collector with their units", function* () {
    const collector = yield* Collector
    const service = yield* RunningService.RunningService
    yield* trafficOf(service)
    for (const [name, unit] of Object.entries(units)) {
      const metric = yield* collector.until(() => collector.metricsOf("measured").find((found) => found.name === name))
      assert.strictEqual(metric.unit, unit, name)
      assert.isString(metric.description, name)
      const points = [metric.sum, metric.gauge, metric.histogram].flatMap((kind) => kind?.dataPoints ?? [])
      assert.isNotEmpty(points, name)
      for (const { attributes } of points) assert.notProperty(attributes ?? {}, "unit")
    }
  })

  it.effect("have one series per route, whatever paths are requested", function* () {
    const port = yield* AdminPort
    const service = yield* RunningService.RunningService
    const linesOf = (text: string) =>
      text.split("\n").filter((line) => line.startsWith("http_server_request_duration_seconds_count"))
    yield* service.get("/nowhere")
    const before = linesOf(yield* readMetrics(port)).length
    for (const index of Array.from({ length: 30 }).keys()) {
      yield* service.get(`/nowhere/${index}`)
      yield* service.validate(`XX${index}`)
      yield* service.ask("/health", { method: "DELETE" })
    }
    const lines = linesOf(yield* readMetrics(port))
    assert.isAtMost(lines.length - before, 3, lines.join("\n"))
  })
})

/** In an outage of the collector the service answers fast and stops in time. */
import { Clock, Effect, Layer, Schedule } from "effect"
import { HttpClient } from "effect/http"
import { settingsFor } from "#test/support/Collector.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, layer } from "#test/support/Test.ts"

/**
 * Reads the number of lost trace exports and of all accepted exports from the metrics. The services of this process share the
 * counters.
 */
const exportsOf = Effect.fnUntraced(function* (port: number) {
  const http = yield* HttpClient.HttpClient
  const text = yield* Effect.flatMap(http.get(`http://127.0.0.1:${port}/metrics`), (response) => response.text)
  const lines = text.split("\n").filter((line) => line.startsWith("vatproof_telemetry_exports_total"))
  const countOf = (labels: RegExp) =>
    lines.filter((line) => labels.test(line)).reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)
  return { lost: countOf(/"traces".*"lost"/u), taken: countOf(/"taken"/u) }
})

/** Number of the stand-in's prepared responses: more than it needs. */
const enough = 2_000
const requests = 60

const outages = [
  ["is away", null],
  ["hangs", StandIn.silence],
  ["is overloaded", StandIn.answer(503, "", { "retry-after": "1" })]
] as const

layer(Layer.merge(RunningService.layerSharedGround, StandIn.layer), { excludeTestServices: true })(
  "while the collector",
  (it) => {
    it.effect.each(outages)("%s, requests are answered and the service stops in time", function* ([, script]) {
      const { baseUrl, next } = yield* StandIn.StandIn
      if (script !== null) yield* next(...Array.from({ length: enough }, () => script))
      const url = script === null ? `http://127.0.0.1:${yield* RunningService.freePort}` : baseUrl
      const port = yield* RunningService.freePort
      const service = yield* RunningService.start({
        ...settingsFor(url, "alone"),
        OTEL_TRACES_SAMPLER: "always_on",
        OTEL_EXPORTER_OTLP_TIMEOUT: "1000",
        ADMIN_PORT: String(port),
        OTEL_METRIC_EXPORT_INTERVAL: "50"
      })
      const before = yield* exportsOf(port)
      const key = yield* service.newKey
      const slowest = { ms: 0 }
      for (const index of Array.from({ length: requests }).keys()) {
        const started = yield* Clock.currentTimeMillis
        const { status } = yield* service.validate(index % 2 === 0 ? "LU12345678" : "nonsense", { key })
        slowest.ms = Math.max(slowest.ms, (yield* Clock.currentTimeMillis) - started)
        assert.strictEqual(status, index % 2 === 0 ? 200 : 400)
      }
      assert.isBelow(slowest.ms, 2_000)
      yield* Effect.repeat(exportsOf(port), { schedule: Schedule.spaced("50 millis"), until: ({ lost }) => lost > before.lost })
      assert.strictEqual((yield* exportsOf(port)).taken, before.taken)
      const stopped = yield* Clock.currentTimeMillis
      yield* service.stop
      assert.isBelow((yield* Clock.currentTimeMillis) - stopped, 2_000)
    })
  }
)

/** Tests that the service answers fast and stops in time during an outage of the telemetry collector. */
import { Clock, Effect, Layer, MutableRef, Schedule } from "effect"
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

/** Number of prepared responses of the stand-in for a collector. The test needs fewer. */
const enough = 2_000

const outages: ReadonlyArray<readonly [string, StandIn.Script]> = [
  ["breaks connections", ({ reset }) => reset],
  ["is overloaded", StandIn.answer(503, "", { "retry-after": "1" })],
  ["hangs", StandIn.silence]
]

layer(Layer.merge(RunningService.layerSharedGround, StandIn.layer), { excludeTestServices: true })(
  "a service whose telemetry collector is unavailable",
  (it) => {
    it.effect("answers every request fast, counts the lost exports and stops in time", function* () {
      const { baseUrl, next } = yield* StandIn.StandIn
      const outage = MutableRef.make<StandIn.Script>(StandIn.silence)
      yield* next(...Array.from({ length: enough }, (): StandIn.Script => (call) => outage.current(call)))
      const port = yield* RunningService.freePort
      const service = yield* RunningService.start({
        ...settingsFor(baseUrl, "alone"),
        OTEL_TRACES_SAMPLER: "always_on",
        OTEL_EXPORTER_OTLP_TIMEOUT: "1000",
        ADMIN_PORT: String(port),
        OTEL_METRIC_EXPORT_INTERVAL: "50"
      })
      const key = yield* service.newKey
      const isFast = (vatId: string, expected: number) =>
        Effect.gen(function* () {
          const started = yield* Clock.currentTimeMillis
          assert.strictEqual((yield* service.validate(vatId, { key })).status, expected)
          assert.isBelow((yield* Clock.currentTimeMillis) - started, 2_000)
        })
      for (const [name, script] of outages) {
        MutableRef.set(outage, script)
        const before = yield* exportsOf(port)
        // Waits for two lost exports, because one of them may have started in the previous outage.
        const { taken } = yield* isFast("LU12345678", 200).pipe(
          Effect.andThen(isFast("nonsense", 400)),
          Effect.andThen(exportsOf(port)),
          Effect.repeat({ schedule: Schedule.spaced("50 millis"), until: ({ lost }) => lost >= before.lost + 2 })
        )
        assert.strictEqual(taken, before.taken, name)
      }
      const stopped = yield* Clock.currentTimeMillis
      yield* service.stop
      assert.isBelow((yield* Clock.currentTimeMillis) - stopped, 2_000)
    })
  }
)

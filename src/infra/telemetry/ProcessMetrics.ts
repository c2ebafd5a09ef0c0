/** The process itself, by OpenTelemetry's conventions for processes and for Node.js (read 2026-11). */
import { Effect, Layer, Metric } from "effect"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"

const gauge = (name: string, unit: string, description: string) => Metric.gauge(name, { description, attributes: { unit } })
const counter = (name: string, unit: string, description: string, more: Readonly<Record<string, string>> = {}) =>
  Metric.counter(name, { description, incremental: true, attributes: { unit, ...more } })

const loopResolutionMs = 20
const nanosPerSecond = 1e9
const microsPerSecond = 1e6

/** Series that are read when somebody asks for the metrics, and cost nothing in between. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const context = yield* Effect.context<never>()
    const delay = monitorEventLoopDelay({ resolution: loopResolutionMs })
    delay.enable()
    const seconds = (nanos: number) => (Number.isFinite(nanos) ? nanos / nanosPerSecond : 0)
    const gauges: ReadonlyArray<readonly [Metric.Gauge<number>, () => number]> = [
      [gauge("process.memory.usage", "By", "Resident memory of the process"), () => process.memoryUsage.rss()],
      [gauge("v8js.memory.heap.used", "By", "Heap in use"), () => process.memoryUsage().heapUsed],
      [
        gauge("nodejs.eventloop.utilization", "1", "Share of the time in which the event loop was busy"),
        () => performance.eventLoopUtilization().utilization
      ],
      [
        gauge("nodejs.eventloop.delay.p50", "s", "Median delay of the event loop since the start"),
        () => seconds(delay.percentile(50))
      ],
      [
        gauge("nodejs.eventloop.delay.p99", "s", "99th percentile of the event loop's delay since the start"),
        () => seconds(delay.percentile(99))
      ]
    ]
    const cpu = (mode: "user" | "system") =>
      [
        counter("process.cpu.time", "s", "CPU time of the process", { "cpu.mode": mode }),
        () => process.cpuUsage()[mode] / microsPerSecond
      ] as const
    const registrations = [
      ...gauges.map(([metric, read]) => Metric.registerUnsafe(metric, context, { ...noHooks, get: () => ({ value: read() }) })),
      ...[cpu("user"), cpu("system")].map(([metric, read]) =>
        Metric.registerUnsafe(metric, context, { ...noHooks, get: () => ({ count: read(), incremental: true }) })
      )
    ]
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        delay.disable()
        for (const registration of registrations) registration.remove()
      })
    )
  })
)

const noHooks = { update: () => {}, modify: () => {} }

/**
 * Metrics of the process, by the conventions of OpenTelemetry for processes, Node.js and V8, and of Prometheus (read 2026-11).
 */
import { Duration, Effect, Layer, Metric, Predicate, Schedule } from "effect"
import { constants, monitorEventLoopDelay, performance, PerformanceObserver } from "node:perf_hooks"
import * as Worker from "#domain/concurrency/Worker.ts"
import * as Metrics from "#domain/telemetry/Metrics.ts"

const gauge = (name: string, unit: string, description: string) => Metric.gauge(name, { description, attributes: { unit } })
const counter = (name: string, unit: string, description: string, more: Readonly<Record<string, string>> = {}) =>
  Metric.counter(name, { description, incremental: true, attributes: { unit, ...more } })

const loopResolutionMs = 20
const nanosPerSecond = 1e9
const microsPerSecond = 1e6

/**
 * The period that one value of an event loop metric covers. The period is fixed, because Prometheus and a collector read the
 * metrics at different times.
 */
export const interval = Duration.seconds(10)

const loopUtilization = Metrics.gauge("nodejs.eventloop.utilization", {
  unit: "1",
  description: "Share of the last ten seconds in which the event loop was busy"
})()
const loopDelay = {
  p50: Metrics.gauge("nodejs.eventloop.delay.p50", {
    unit: "s",
    description: "Median delay of the event loop in the last ten seconds"
  })(),
  p99: Metrics.gauge("nodejs.eventloop.delay.p99", {
    unit: "s",
    description: "99th percentile of the event loop's delay in the last ten seconds"
  })(),
  max: Metrics.gauge("nodejs.eventloop.delay.max", {
    unit: "s",
    description: "Longest delay of the event loop in the last ten seconds"
  })()
}

/** Histogram boundaries in seconds: those of OpenTelemetry's convention, and 1 ms. */
const gcBoundaries = [0.001, 0.01, 0.1, 1, 10]

/** Label: `v8js.gc.type`. */
const gcDuration = Metrics.histogram("v8js.gc.duration", gcBoundaries, {
  unit: "s",
  description: "Pauses of garbage collection"
})
const gcTypes = new Map([
  [constants.NODE_PERFORMANCE_GC_MINOR, "minor"],
  [constants.NODE_PERFORMANCE_GC_MAJOR, "major"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "incremental"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "weakcb"]
])

const startTime = Metrics.gauge("process.start.time", {
  unit: "s",
  description: "Start of the process, in seconds since 1970"
})()
const buildInfo = Metrics.gauge("vatproof.build.info", {
  unit: "{build}",
  description: "1, with the versions of the service and of Node.js as labels"
})

/** Measures the event loop during each interval. */
const watchLoop = Effect.gen(function* () {
  const delay = monitorEventLoopDelay({ resolution: loopResolutionMs })
  yield* Effect.acquireRelease(
    Effect.sync(() => delay.enable()),
    () => Effect.sync(() => delay.disable())
  )
  let before = performance.eventLoopUtilization()
  // Subtracts the interval between two measurements, because Node includes it in the measured delay.
  const seconds = (nanos: number) => (Number.isFinite(nanos) ? Math.max(0, nanos / nanosPerSecond - loopResolutionMs / 1000) : 0)
  const sample = Effect.gen(function* () {
    const now = performance.eventLoopUtilization()
    yield* Metric.update(loopUtilization, performance.eventLoopUtilization(now, before).utilization)
    before = now
    yield* Metric.update(loopDelay.p50, seconds(delay.percentile(50)))
    yield* Metric.update(loopDelay.p99, seconds(delay.percentile(99)))
    yield* Metric.update(loopDelay.max, seconds(delay.max))
    delay.reset()
  })
  yield* Worker.loop("Measuring the event loop", sample, { schedule: Schedule.spaced(interval) })
})

const watchGarbageCollection = Effect.gen(function* () {
  const context = yield* Effect.context<never>()
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const type = gcTypes.get(kindOf(entry))
      if (type !== undefined) gcDuration({ "v8js.gc.type": type }).updateUnsafe(entry.duration / 1000, context)
    }
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => observer.observe({ entryTypes: ["gc"] })),
    () => Effect.sync(() => observer.disconnect())
  )
})

const kindOf = (entry: object) =>
  Predicate.hasProperty(entry, "detail") && Predicate.hasProperty(entry.detail, "kind") ? Number(entry.detail.kind) : -1

/** Collects the metrics of this process. `version` is the version of the service. */
export const layer = (version: string) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const context = yield* Effect.context<never>()
      yield* Metric.update(startTime, performance.timeOrigin / 1000)
      yield* Metric.update(buildInfo({ version, "process.runtime.version": process.version }), 1)
      yield* watchLoop
      yield* watchGarbageCollection
      const gauges: ReadonlyArray<readonly [Metric.Gauge<number>, () => number]> = [
        [gauge("process.memory.usage", "By", "Resident memory of the process"), () => process.memoryUsage.rss()],
        [gauge("v8js.memory.heap.used", "By", "Heap in use"), () => process.memoryUsage().heapUsed]
      ]
      const cpu = (mode: "user" | "system") =>
        [
          counter("process.cpu.time", "s", "CPU time of the process", { "cpu.mode": mode }),
          () => process.cpuUsage()[mode] / microsPerSecond
        ] as const
      // These metrics are read only when they are requested, so they cost nothing in between.
      const registrations = [
        ...gauges.map(([metric, read]) => Metric.registerUnsafe(metric, context, { ...noHooks, get: () => ({ value: read() }) })),
        ...[cpu("user"), cpu("system")].map(([metric, read]) =>
          Metric.registerUnsafe(metric, context, { ...noHooks, get: () => ({ count: read(), incremental: true }) })
        )
      ]
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const registration of registrations) registration.remove()
        })
      )
    })
  )

const noHooks = { update: () => {}, modify: () => {} }

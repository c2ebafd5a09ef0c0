import { assert, it } from "@effect/vitest"
import { Effect, Metric, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { performance } from "node:perf_hooks"
import * as ProcessMetrics from "#infra/telemetry/ProcessMetrics.ts"

const gauge = Effect.fnUntraced(function* (id: string) {
  const found = (yield* Metric.snapshot).find((series) => series.id === id)
  return found?.type === "Gauge" ? Number(found.state.value) : assert.fail(`There is no gauge ${id}`)
})

/** Blocks the event loop. */
const block = (ms: number) =>
  Effect.sync(() => {
    const until = performance.now() + ms
    while (performance.now() < until);
  })

/** Waits until the event loop has been idle for this long. */
const idle = (ms: number) =>
  Effect.suspend(() => {
    const before = performance.eventLoopUtilization().idle
    return Effect.sync(() => performance.eventLoopUtilization().idle - before).pipe(
      Effect.repeat({ schedule: Schedule.spaced("10 millis"), until: (idled) => idled >= ms }),
      TestClock.withLive
    )
  })

it.effect("the event loop's gauges cover the last interval", () =>
  Effect.gen(function* () {
    yield* idle(50)
    yield* block(300)
    yield* idle(50)
    yield* TestClock.adjust(ProcessMetrics.interval)
    assert.isAbove(yield* gauge("nodejs.eventloop.utilization"), 0.5)
    assert.isAbove(yield* gauge("nodejs.eventloop.delay.max"), 0.2)
    assert.isAbove(yield* gauge("nodejs.eventloop.delay.p99"), 0.2)

    yield* idle(200)
    yield* TestClock.adjust(ProcessMetrics.interval)
    assert.isBelow(yield* gauge("nodejs.eventloop.utilization"), 0.5)
    assert.isBelow(yield* gauge("nodejs.eventloop.delay.max"), 0.2)
  }).pipe(Effect.provide(ProcessMetrics.layer("0.1.0")), Effect.scoped)
)

it.effect("garbage collection is measured by its type", () =>
  Effect.gen(function* () {
    const series = Effect.map(Metric.snapshot, (all) => all.filter(({ id }) => id === "v8js.gc.duration"))
    const litter = Effect.sync(() => Array.from({ length: 200_000 }, (_, index) => ({ index })).length)
    yield* Effect.andThen(litter, idle(1)).pipe(Effect.andThen(series), Effect.repeat({ until: (found) => found.length > 0 }))
  }).pipe(Effect.provide(ProcessMetrics.layer("0.1.0")), Effect.scoped)
)

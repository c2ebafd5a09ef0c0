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

it.effect("the event loop gauges cover only the last measuring interval", () =>
  Effect.gen(function* () {
    const interval = Effect.fnUntraced(function* (activity: Effect.Effect<void>) {
      const before = performance.eventLoopUtilization()
      yield* activity
      yield* TestClock.adjust(ProcessMetrics.interval)
      assert.closeTo(yield* gauge("nodejs.eventloop.utilization"), performance.eventLoopUtilization(before).utilization, 0.1)
      return { max: yield* gauge("nodejs.eventloop.delay.max"), p99: yield* gauge("nodejs.eventloop.delay.p99") }
    })
    const busy = yield* interval(idle(50).pipe(Effect.andThen(block(1000)), Effect.andThen(idle(50))))
    assert.isAbove(busy.max, 0.9)
    assert.isAbove(busy.p99, 0.9)

    // The machine may be busy, so the idle interval is compared with the busy one.
    const calm = yield* interval(idle(200))
    assert.isBelow(calm.max, busy.max)
    assert.isBelow(calm.p99, busy.p99)
  }).pipe(Effect.provide(ProcessMetrics.layer("0.1.0")), Effect.scoped)
)

it.effect("garbage collection is measured", () =>
  Effect.gen(function* () {
    const series = Effect.map(Metric.snapshot, (all) => all.filter(({ id }) => id === "v8js.gc.duration"))
    const litter = Effect.sync(() => Array.from({ length: 200_000 }, (_, index) => ({ index })).length)
    yield* Effect.andThen(litter, idle(1)).pipe(Effect.andThen(series), Effect.repeat({ until: (found) => found.length > 0 }))
  }).pipe(Effect.provide(ProcessMetrics.layer("0.1.0")), Effect.scoped)
)

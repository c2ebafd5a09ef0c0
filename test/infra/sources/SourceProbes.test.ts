import { DateTime, Effect, Fiber, Layer, Logger, Ref, Result } from "effect"
import { TestClock } from "effect/testing"
import { SourceLog, type SourceState } from "#domain/vat/Sources.ts"
import { parse } from "#domain/vat/VatId.ts"
import type { SourceName } from "#domain/vat/Verdict.ts"
import * as ResilientSource from "#infra/sources/ResilientSource.ts"
import * as SourceProbes from "#infra/sources/SourceProbes.ts"
import { assert, it } from "#test/support/Test.ts"
import * as WallClock from "#test/support/WallClock.ts"

const german = Result.getOrThrow(parse("DE123456789"))

const degraded = {
  state: "degraded",
  reason: "timeout",
  lastChecked: DateTime.makeUnsafe(0),
  latencyMs: 1,
  answers: true
} as const

it.effect(
  "the probes of a source continue after a failure to record a change of its state, and record the change in the next iteration",
  function* () {
    const asked = yield* Ref.make(0)
    const recorded = yield* Ref.make<ReadonlyArray<string>>([])
    const log = Layer.mock(SourceLog, {
      record: (source) =>
        Effect.flatMap(
          Ref.updateAndGet(asked, (times) => times + 1),
          (times) => (times === 1 ? Effect.die("defect") : Ref.update(recorded, (before) => [...before, source]))
        )
    })
    const source = { source: "vies", probe: Effect.void, trouble: Effect.never, status: Effect.succeed(degraded) } as const
    yield* Effect.provide(SourceProbes.run([source], "here"), log)
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(yield* Ref.get(recorded), ["vies"])
  }
)

it.effect(
  "a change of a source's state to unavailable is logged as a warning, and every other change of its state as information",
  function* () {
    const lines: Array<string> = []
    const keep = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
    const state = yield* Ref.make<SourceState>("degraded")
    const status = Effect.map(Ref.get(state), (now) => ({ ...degraded, state: now }))
    const source = { source: "vies", probe: Effect.void, trouble: Effect.never, status } as const
    yield* SourceProbes.run([source], "here").pipe(
      Effect.provide(Layer.merge(Layer.mock(SourceLog, { record: () => Effect.void }), Logger.layer([keep])))
    )
    for (const next of ["unavailable", "operational"] as const) {
      yield* TestClock.adjust("6 seconds")
      yield* Ref.set(state, next)
    }
    yield* TestClock.adjust("6 seconds")
    assert.deepStrictEqual(lines, ["Info vies is degraded", "Warn vies is unavailable", "Info vies is operational"])
  }
)

it.effect("a source is probed every 30 s, even after the clock was set back", function* () {
  const wallClock = yield* WallClock.make
  const probes = yield* Ref.make(0)
  const status = Effect.succeed({ ...degraded, state: "operational" } as const)
  const source = { source: "vies", probe: Ref.update(probes, (count) => count + 1), trouble: Effect.never, status } as const
  yield* TestClock.adjust("1 minute")
  yield* SourceProbes.run([source], "here").pipe(
    Effect.provide(Layer.mock(SourceLog, { record: () => Effect.void })),
    wallClock.on
  )
  yield* TestClock.adjust("1 second")
  assert.strictEqual(yield* Ref.get(probes), 1)
  wallClock.setBack("1 hour")
  yield* TestClock.adjust("60 seconds")
  assert.strictEqual(yield* Ref.get(probes), 3)
})

it.effect("two sources that do not respond are reported as unavailable 15 s after the first timeout", function* () {
  let hangs = false
  const hanging = (source: SourceName) =>
    ResilientSource.make({
      source,
      ask: () => Effect.never,
      probe: Effect.suspend(() => (hangs ? Effect.never : Effect.void)),
      concurrentPerMemberState: 1,
      timeout: () => "20 seconds"
    })
  const [vies, bzst] = [yield* hanging("vies"), yield* hanging("bzst")]
  const answers = Effect.map(Effect.all([vies.status, bzst.status]), (states) => states.map((one) => one.answers))
  const live = (source: typeof vies) => source.through(german, Effect.void)
  yield* live(vies)
  yield* Effect.provide(SourceProbes.run([vies, bzst], "here"), Layer.mock(SourceLog, { record: () => Effect.void }))
  yield* TestClock.adjust("1 second")
  hangs = true
  const question = { vatId: german, requester: null, isShared: true }
  const call = yield* Effect.forkChild(Effect.exit(vies.ask(question)))
  yield* TestClock.adjust("20 seconds")
  yield* Fiber.join(call)
  yield* live(bzst)
  assert.deepStrictEqual(yield* answers, [true, true])
  yield* TestClock.adjust("15 seconds")
  assert.deepStrictEqual(yield* answers, [false, false])
})

import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Ref } from "effect"
import { TestClock } from "effect/testing"
import { SourceLog } from "#domain/Sources.ts"
import * as SourceProbes from "#infra/SourceProbes.ts"

const degraded = { state: "degraded", reason: "timeout", lastChecked: DateTime.makeUnsafe(0), latencyMs: 1 } as const

it.effect("the watch of a source survives a change that could not be recorded, and records it at its next turn", () =>
  Effect.gen(function* () {
    const asked = yield* Ref.make(0)
    const recorded = yield* Ref.make<ReadonlyArray<string>>([])
    const log = Layer.mock(SourceLog, {
      record: (source) =>
        Effect.flatMap(
          Ref.updateAndGet(asked, (times) => times + 1),
          (times) => (times === 1 ? Effect.die("stumbled") : Ref.update(recorded, (before) => [...before, source]))
        )
    })
    const source = { source: "vies", probe: Effect.void, trouble: Effect.never, status: Effect.succeed(degraded) } as const
    yield* Effect.provide(SourceProbes.run([source], "here"), log)
    yield* TestClock.adjust("30 seconds")
    assert.deepStrictEqual(yield* Ref.get(recorded), ["vies"])
  })
)

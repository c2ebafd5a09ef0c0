import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as ExportHealth from "#infra/telemetry/ExportHealth.ts"
import { assert, describe, it } from "#test/support/Test.ts"

describe("the health of telemetry exports", () => {
  it.effect(
    "is logged once while the exports of one signal, such as traces, fail and another signal succeeds, and once after the recovery",
    function* () {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      yield* Effect.gen(function* () {
        const health = yield* ExportHealth.make
        for (let round = 0; round < 3; round += 1) {
          health.note("traces", new Error("status 404"))
          yield* TestClock.adjust("10 seconds")
          health.note("metrics", undefined)
          yield* TestClock.adjust("10 seconds")
        }
        assert.lengthOf(lines, 1)
        assert.include(lines[0], "does not accept telemetry (traces: status 404)")
        health.note("traces", undefined)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(lines.slice(1), ["The collector accepts telemetry again"])
      }).pipe(Effect.provide(Logger.layer([logger])))
    }
  )
})

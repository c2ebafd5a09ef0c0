import { Duration } from "effect"
import { describe } from "vitest"
import * as BatchEstimate from "#domain/pending/BatchEstimate.ts"
import { assert, it } from "#test/support/Test.ts"

/** Simulates registers that are asked with 2, 4, 8, then 10 calls at once. Returns the answers of each after a time, and the time of the last answer. */
const simulate = (registers: ReadonlyArray<{ readonly items: number; readonly callMs: number }>) => {
  const answeredOf = (items: number, callMs: number, elapsedMs: number) => {
    const rounds = Math.floor(elapsedMs / callMs)
    const answered = [0, 2, 6, 14][rounds] ?? 14 + (rounds - 3) * 10
    return Math.min(items, answered)
  }
  const answered = (elapsedMs: number) => registers.map(({ callMs, items }) => answeredOf(items, callMs, elapsedMs))
  let endMs = 0
  while (answered(endMs).some((count, index) => count < (registers[index]?.items ?? 0))) endMs += 10
  return { answered, endMs }
}

describe("the estimated end of a batch", () => {
  it.each([
    ["one slow register", [{ items: 1_000, callMs: 1_000 }]],
    ["one fast register", [{ items: 50_000, callMs: 10 }]],
    [
      "a large and a small register",
      [
        { items: 3_000, callMs: 300 },
        { items: 40, callMs: 300 }
      ]
    ],
    [
      "a slow and a fast register",
      [
        { items: 400, callMs: 2_000 },
        { items: 20_000, callMs: 20 }
      ]
    ]
  ] as const)("is within a factor of two for %s, whatever part of the items is in the log", (_, registers) => {
    const { answered, endMs } = simulate(registers)
    let estimates = 0
    for (let elapsedMs = 0; elapsedMs < endMs; elapsedMs += 250) {
      const queues = registers.map(({ items }, index) => ({
        open: items - (answered(elapsedMs)[index] ?? 0),
        final: answered(elapsedMs)[index] ?? 0
      }))
      const open = queues.reduce((sum, queue) => sum + queue.open, 0)
      const [slowest = { open: 0, final: 1 }] = queues.toSorted((one, other) => other.open / other.final - one.open / one.final)
      for (const share of [1, 0.25]) {
        const inLog = { open: slowest.open * share, final: slowest.final }
        const remaining = BatchEstimate.remaining(
          { open: open * share, pending: open, slowest: inLog },
          Duration.millis(elapsedMs)
        )
        if (remaining === null) continue
        estimates += 1
        const ratio = (elapsedMs + Duration.toMillis(remaining)) / endMs
        assert.isTrue(ratio > 0.5 && ratio < 2, `${elapsedMs} ms of ${endMs} ms: ${ratio}`)
      }
    }
    assert.isAbove(estimates, 10)
  })

  it("is unknown in the first seconds, without progress and without pending items", () => {
    const counts = { open: 10, pending: 10, slowest: { open: 10, final: 20 } }
    assert.isNull(BatchEstimate.remaining(counts, Duration.millis(2_999)))
    assert.isNull(BatchEstimate.remaining({ ...counts, slowest: { open: 10, final: 19 } }, Duration.seconds(60)))
    assert.isNull(BatchEstimate.remaining({ open: 0, pending: 0, slowest: { open: 0, final: 30 } }, Duration.seconds(60)))
  })
})

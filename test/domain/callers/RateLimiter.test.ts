import { assert, describe, it } from "@effect/vitest"
import { rateWindow } from "#domain/callers/RateLimiter.ts"

describe("a minute", () => {
  it("is in whole seconds, rounded up, so that no retry is too early", () => {
    assert.deepStrictEqual(rateWindow(10, 3, 41_001), { limit: 10, remaining: 7, resetSeconds: 42 })
    assert.strictEqual(rateWindow(10, 3, 0).resetSeconds, 1)
  })

  it("is at most a minute, for any order of two calls", () => {
    assert.strictEqual(rateWindow(10, 1, 60_000).resetSeconds, 60)
    assert.strictEqual(rateWindow(10, 2, 60_004).resetSeconds, 60)
  })

  it("reports the number of excess calls", () => {
    assert.strictEqual(rateWindow(10, 12, 5_000).remaining, -2)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { rateWindow } from "#domain/callers/RateLimiter.ts"

describe("a rate window", () => {
  it("reports its remaining time in seconds, rounded up so that no client retries too early", () => {
    assert.deepStrictEqual(rateWindow(10, 3, 41_001), { limit: 10, remaining: 7, resetSeconds: 42 })
    assert.strictEqual(rateWindow(10, 3, 0).resetSeconds, 1)
  })

  it("ends in at most a minute, even for a call that read the clock before the window began", () => {
    assert.strictEqual(rateWindow(10, 1, 60_000).resetSeconds, 60)
    assert.strictEqual(rateWindow(10, 2, 60_004).resetSeconds, 60)
  })

  it("reports a negative number of remaining calls if the limit is exceeded", () => {
    assert.strictEqual(rateWindow(10, 12, 5_000).remaining, -2)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Result } from "effect"
import { isFresh, isServableStale, latestKey } from "#domain/AnswerCache.ts"
import { parse } from "#domain/VatId.ts"
import type { Answer } from "#domain/Verdict.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"

const freshness = { valid: Duration.hours(24), invalid: Duration.hours(1), stale: Duration.days(30) }
const now = DateTime.makeUnsafe("2026-11-20T12:00:00Z")

/** Just under a length of time. */
const justUnder = (length: Duration.Duration) => Duration.subtract(length, Duration.millis(1))

const answered = (valid: boolean, before: Duration.Input): Answer => ({
  ...sourceAnswer,
  valid,
  answered_at: DateTime.subtractDuration(now, before)
})

describe("an answer", () => {
  it.each([
    [true, "0 millis", true],
    [true, "23 hours", true],
    [true, justUnder(freshness.valid), true],
    [true, "24 hours", false],
    [false, "0 millis", true],
    [false, justUnder(freshness.invalid), true],
    [false, "1 hour", false]
  ] as const)("valid: %s, given %s ago, is fresh: %s", (valid, ago, fresh) => {
    assert.strictEqual(isFresh(answered(valid, ago), freshness, now), fresh)
  })

  it("may be served stale for 30 days, valid or not", () => {
    for (const valid of [true, false]) {
      assert.isTrue(isServableStale(answered(valid, justUnder(freshness.stale)), freshness, now))
      assert.isFalse(isServableStale(answered(valid, "30 days"), freshness, now))
    }
  })

  it("from a source whose clock is a little ahead is fresh", () => {
    assert.isTrue(isFresh(answered(true, Duration.negate(Duration.seconds(30))), freshness, now))
  })

  it("from a time far ahead has no known age, and is served no more", () => {
    const ahead = answered(true, Duration.negate(Duration.days(365)))
    assert.isFalse(isFresh(ahead, freshness, now))
    assert.isFalse(isServableStale(ahead, freshness, now))
  })

  it("is kept under its normalised VAT ID", () => {
    const key = (input: string) => latestKey(Result.getOrThrow(parse(input)))
    assert.strictEqual(key("gr 094259216"), key("EL094259216"))
    assert.notStrictEqual(key("EL094259216"), key("DE094259216"))
  })
})

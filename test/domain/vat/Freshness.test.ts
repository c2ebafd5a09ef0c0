import { DateTime, Duration } from "effect"
import { isFresh, isServableStale, validFor } from "#domain/vat/Freshness.ts"
import type { Answer } from "#domain/vat/Verdict.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const freshness = { valid: validFor, invalid: Duration.hours(1), stale: Duration.days(30) }
const now = DateTime.makeUnsafe("2026-11-20T12:00:00Z")
const nowMs = DateTime.toEpochMillis(now)

/** Returns a duration that is a millisecond shorter. */
const justUnder = (length: Duration.Duration) => Duration.subtract(length, Duration.millis(1))

const answered = (valid: boolean, before: Duration.Input): Answer => ({
  ...sourceAnswer,
  valid,
  answered_at: DateTime.subtractDuration(now, before)
})

describe("a stored answer", () => {
  it.each([
    [true, "0 millis", true],
    [true, "23 hours", true],
    [true, justUnder(freshness.valid), true],
    [true, "24 hours", false],
    [false, "0 millis", true],
    [false, justUnder(freshness.invalid), true],
    [false, "1 hour", false]
  ] as const)("with `valid: %s` and an age of %s is fresh: %s", (valid, ago, fresh) => {
    assert.strictEqual(isFresh(answered(valid, ago), freshness, nowMs), fresh)
  })

  it("can be served as stale for up to 30 days, whether it says valid or invalid", () => {
    for (const valid of [true, false]) {
      assert.isTrue(isServableStale(answered(valid, justUnder(freshness.stale)), freshness, nowMs))
      assert.isFalse(isServableStale(answered(valid, "30 days"), freshness, nowMs))
    }
  })

  it("is fresh even if its time is 30 seconds in the future, for example because the source's clock is fast", () => {
    assert.isTrue(isFresh(answered(true, Duration.negate(Duration.seconds(30))), freshness, nowMs))
  })

  it("is neither fresh nor served as stale if its time is a year in the future", () => {
    const ahead = answered(true, Duration.negate(Duration.days(365)))
    assert.isFalse(isFresh(ahead, freshness, nowMs))
    assert.isFalse(isServableStale(ahead, freshness, nowMs))
  })

  it.each([
    ["0 millis", 0, false],
    ["59 seconds", 60, true],
    ["60 seconds", 60, false],
    ["23 hours", 2_592_000, true],
    ["-30 seconds", 1, true],
    ["-30 seconds", 0, false]
  ] as const)("with an age of %s is served to a caller who accepts %s seconds: %s", (ago, maxAge, isServed) => {
    const answer = answered(true, ago === "-30 seconds" ? Duration.negate(Duration.seconds(30)) : ago)
    assert.strictEqual(isFresh(answer, freshness, nowMs, maxAge), isServed)
    assert.strictEqual(isServableStale(answer, freshness, nowMs, maxAge), isServed)
  })

  // In winter a German day begins at 23:00 UTC.
  it.each([
    ["2026-11-24T11:00:00Z", "2026-11-25", "2026-11-24T22:59:59Z", true],
    ["2026-11-24T11:00:00Z", "2026-11-25", "2026-11-24T23:00:00Z", false],
    ["2026-11-24T11:00:00Z", "2026-11-25", "2026-12-20T12:00:00Z", false],
    ["2026-11-24T11:00:00Z", "2026-12-01", "2026-11-25T12:00:00Z", true],
    // evatr-2006: the VAT ID was valid from 2010 and is invalid now.
    ["2026-11-24T11:00:00Z", "2010-01-01", "2026-11-25T12:00:00Z", true]
  ] as const)("of %s, which says invalid with `valid_from` %s, may be served at %s: %s", (at, valid_from, time, isServed) => {
    const answer = { ...sourceAnswer, valid: false, answered_at: DateTime.makeUnsafe(at), valid_from }
    const allDay = { ...freshness, invalid: Duration.days(60), stale: Duration.days(60) }
    assert.strictEqual(isFresh(answer, allDay, Date.parse(time)), isServed)
    assert.strictEqual(isServableStale(answer, allDay, Date.parse(time)), isServed)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { DateTime, Schema } from "effect"
import { billingPeriod, keyMeter } from "#domain/callers/BillingPeriod.ts"

const periodOf = (iso: string) => {
  const { end, name, start } = billingPeriod(DateTime.makeUnsafe(iso))
  return [name, DateTime.formatIso(start), DateTime.formatIso(end)]
}

describe("a billing period", () => {
  it.each([
    ["2026-11-20T12:00:00Z", "2026-11", "2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z"],
    ["2026-12-31T23:59:59.999Z", "2026-12", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["2027-01-01T00:00:00.000Z", "2027-01", "2027-01-01T00:00:00.000Z", "2027-02-01T00:00:00.000Z"],
    ["2027-01-31T12:00:00Z", "2027-01", "2027-01-01T00:00:00.000Z", "2027-02-01T00:00:00.000Z"],
    ["2028-02-29T23:59:59.999Z", "2028-02", "2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z"],
    ["2100-02-28T23:59:59.999Z", "2100-02", "2100-02-01T00:00:00.000Z", "2100-03-01T00:00:00.000Z"],
    ["2000-02-29T00:00:00.000Z", "2000-02", "2000-02-01T00:00:00.000Z", "2000-03-01T00:00:00.000Z"]
  ])("that contains %s is %s", (now, ...period) => {
    assert.deepStrictEqual(periodOf(now), period)
  })

  it("is a month in UTC, even for a time in another time zone", () => {
    // 23:30 UTC in October, and 00:30 UTC in November.
    assert.strictEqual(periodOf("2026-11-01T00:30:00+01:00")[0], "2026-10")
    assert.strictEqual(periodOf("2026-10-31T23:30:00-01:00")[0], "2026-11")
  })

  const millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4_102_444_800_000 }))
  it.prop("contains the time that it is computed for, and ends where the next period starts", [millis], ([at]) => {
    const now = DateTime.makeUnsafe(at)
    const period = billingPeriod(now)
    assert.isAtMost(DateTime.toEpochMillis(period.start), at)
    assert.isAbove(DateTime.toEpochMillis(period.end), at)
    assert.deepStrictEqual(billingPeriod(period.end).start, period.end)
    assert.strictEqual(period.name, DateTime.formatIso(now).slice(0, 7))
  })

  it("has its own meter for each key", () => {
    const november = billingPeriod(DateTime.makeUnsafe("2026-11-20T12:00:00Z"))
    const december = billingPeriod(november.end)
    assert.strictEqual(new Set([keyMeter("a", november), keyMeter("b", november), keyMeter("a", december)]).size, 3)
  })
})

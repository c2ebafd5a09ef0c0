import { assert, it } from "@effect/vitest"
import { DateTime, Option } from "effect"
import * as LogPeriod from "#domain/log/LogPeriod.ts"

const written = (moment: Option.Option<DateTime.Utc>) => Option.getOrNull(Option.map(moment, DateTime.formatIso))

it.each([
  ["2026-11-22", "2026-11-22T00:00:00.000Z", "2026-11-23T00:00:00.000Z"],
  ["2026-12-31", "2026-12-31T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
  ["2028-02-28", "2028-02-28T00:00:00.000Z", "2028-02-29T00:00:00.000Z"],
  ["2026-11-22T00:00:00Z", "2026-11-22T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
  ["2026-11-22T09:30:00+01:00", "2026-11-22T08:30:00.000Z", "2026-11-22T08:30:00.000Z"],
  ["2026-11-22T09:30:15.25-00:30", "2026-11-22T10:00:15.250Z", "2026-11-22T10:00:15.250Z"],
  ["2026-11-22T09:30", "2026-11-22T09:30:00.000Z", "2026-11-22T09:30:00.000Z"],
  ["2026-11-22 09:30:15z", "2026-11-22T09:30:15.000Z", "2026-11-22T09:30:15.000Z"],
  ["2028-02-29", "2028-02-29T00:00:00.000Z", "2028-03-01T00:00:00.000Z"]
])("the bound %s means %s as the start of a period, and %s as its end", (text, start, end) => {
  assert.strictEqual(written(LogPeriod.startOf(text)), start)
  assert.strictEqual(written(LogPeriod.endOf(text)), end)
})

it.each([
  "",
  "yesterday",
  "1",
  "2026",
  "2026-11",
  "foo 1",
  "05.11.2026",
  "11/05/2026",
  "2026-11-31",
  "2026-02-29",
  "2026-02-29T10:00:00Z",
  "2026-13-01",
  "2026-11-22T25:00:00Z",
  "2026-11-22T10:60:00Z",
  "2026-11-22T09:30:00 01:00",
  "2026-11-22T09:30:15.123456Z",
  " 2026-11-22",
  "2026-11-22Z",
  "2026-11-22T10:00:00+01:00[Europe/Berlin]"
])("%j is rejected as the start or end of a period", (text) => {
  assert.isNull(written(LogPeriod.startOf(text)))
  assert.isNull(written(LogPeriod.endOf(text)))
})

import { assert, it } from "@effect/vitest"
import { DateTime, Duration } from "effect"
import { untilQuietEnds } from "#domain/pending/BzstPacing.ts"

it.each([
  ["2026-11-23T21:59:00Z", 0],
  ["2026-11-23T22:00:00Z", 360],
  ["2026-11-24T03:59:00Z", 1],
  ["2026-11-24T04:00:00Z", 0],
  // In summer, German time is UTC+2.
  ["2026-07-01T20:59:00Z", 0],
  ["2026-07-01T21:30:00Z", 330],
  ["2026-07-02T03:00:00Z", 0],
  // The night in which summer time begins has an hour less, and the night in which it ends has an hour more.
  ["2026-03-28T22:00:00Z", 300],
  ["2026-03-29T02:59:00Z", 1],
  ["2026-10-24T21:00:00Z", 420],
  ["2026-10-25T00:30:00Z", 210],
  ["2026-10-25T01:30:00Z", 150]
])("at %s, retries to the BZSt wait %i minutes for the end of its nightly pause", (moment, minutes) => {
  assert.strictEqual(Duration.toMinutes(untilQuietEnds(DateTime.makeUnsafe(moment))), minutes)
})

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
  ["2026-07-02T03:00:00Z", 0]
])("at %s, retries to the BZSt wait %i minutes for the end of its nightly pause", (moment, minutes) => {
  assert.strictEqual(Duration.toMinutes(untilQuietEnds(DateTime.makeUnsafe(moment))), minutes)
})

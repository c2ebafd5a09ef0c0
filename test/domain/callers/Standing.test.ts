import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { nearLimit } from "#domain/callers/Standing.ts"

describe("nearLimit", () => {
  it.each([
    [0, 10, false],
    [8, 10, false],
    [9, 10, true],
    [80, 100, false],
    [81, 100, true],
    [100, 100, true],
    [101, 100, true],
    [0, 0, false],
    [1, 0, true],
    [0, 1, false],
    [1, 1, true]
  ])("with %i used of %i units returns %s", (used, limit, near) => {
    assert.strictEqual(nearLimit({ used, limit }), near)
  })

  const count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 }))
  it.prop("returns true only for usage above 80 % of the limit, without floating-point errors", [count], ([fifth]) => {
    assert.isFalse(nearLimit({ used: fifth * 4, limit: fifth * 5 }))
    assert.isTrue(nearLimit({ used: fifth * 4 + 1, limit: fifth * 5 }))
  })
})

import { assert, describe, it } from "@effect/vitest"
import * as Sampler from "#infra/telemetry/Sampler.ts"

/** Ids whose random bits go evenly through all values. */
const ids = Array.from(
  { length: 1_000 },
  (_, index) =>
    `${"a".repeat(19)}${Math.floor((index / 1_000) * 2 ** 52)
      .toString(16)
      .padStart(13, "0")}`
)

const shareOf = (sampler: Sampler.Sampler, parent: boolean | null) => ids.filter((id) => sampler(id, parent)).length / ids.length

describe("Sampler", () => {
  it.each([
    ["always_on", 0, [1, 1, 1]],
    ["always_off", 1, [0, 0, 0]],
    ["traceidratio", 0.25, [0.25, 0.25, 0.25]],
    ["parentbased_always_on", 0, [1, 1, 0]],
    ["parentbased_always_off", 1, [0, 1, 0]],
    ["parentbased_traceidratio", 0.05, [0.05, 1, 0]],
    ["traceidratio", 0, [0, 0, 0]],
    ["traceidratio", 1, [1, 1, 1]]
  ] as const)(
    "%s with %d keeps these shares: without a parent, with a sampled one, with one that is not",
    (name, ratio, shares) => {
      const sampler = Sampler.make({ name, ratio })
      const found = [shareOf(sampler, null), shareOf(sampler, true), shareOf(sampler, false)]
      for (const [index, share] of shares.entries()) assert.closeTo(found[index] ?? -1, share, 0.0011)
    }
  )
})

import { assert, describe, it } from "@effect/vitest"
import * as TaskPacing from "#domain/pending/TaskPacing.ts"

const status = (state: "operational" | "degraded" | "unavailable") => [{ prefix: "SE", state, sinceMs: 0, answeredMs: 1_000 }]
const claimed = (count: number, memberState = "SE") =>
  Array.from({ length: count }, (_, index) => ({
    taskId: `${index}`,
    accountId: "",
    keyId: "",
    batchId: null,
    vatId: "",
    claim: "",
    position: 0,
    memberState,
    attempts: 1,
    isExpired: false,
    isCancelled: false,
    isProbe: false,
    accepted: null
  }))

/** Returns two numbers for Sweden: its free slots, and the age of its newest answer. Returns null without a free slot. */
const placesOf = (pacing: ReturnType<typeof TaskPacing.make>, nowMs: number) => {
  const slots = pacing.slots(nowMs).find(({ memberState }) => memberState === "SE")
  return slots === undefined ? null : [slots.slots, slots.answerMs]
}

describe("TaskPacing", () => {
  it("runs no task of a member state while its register is unavailable, and one task at a time while the register is degraded", () => {
    const pacing = TaskPacing.make()
    pacing.observe(status("unavailable"), 0)
    assert.isNull(placesOf(pacing, 0))
    pacing.observe(status("degraded"), 1_000)
    assert.deepStrictEqual(placesOf(pacing, 1_000), [1, 0])
    pacing.claimed(claimed(1))
    assert.isNull(placesOf(pacing, 1_000))
  })

  it("reads the state of a degraded register again as soon as the single task that probes the register has ended", () => {
    const pacing = TaskPacing.make()
    pacing.observe(status("degraded"), 1_000)
    pacing.claimed(claimed(1))
    assert.isFalse(pacing.isStale(1_100))
    pacing.ended("SE", false)
    assert.isTrue(pacing.isStale(1_100))
  })

  it("runs two tasks at once after a register's recovery, and doubles this limit each time that many answers have arrived, up to ten", () => {
    const pacing = TaskPacing.make()
    pacing.observe(status("unavailable"), 0)
    pacing.observe(status("operational"), 1_000)
    const limits = []
    for (let round = 0; round < 5; round += 1) {
      const [places = 0] = placesOf(pacing, 3_000) ?? []
      limits.push(places)
      pacing.claimed(claimed(Number(places)))
      for (let task = 0; task < Number(places); task += 1) pacing.ended("SE", true)
    }
    assert.deepStrictEqual(limits, [2, 4, 8, 10, 10])
  })

  it("claims tasks of every member state after the registers of all have answered many tasks", () => {
    const pacing = TaskPacing.make()
    const states = () => pacing.slots(0).map(({ memberState }) => memberState)
    const all = states()
    for (const memberState of all) {
      pacing.claimed(claimed(20, memberState))
      for (let task = 0; task < 20; task += 1) pacing.ended(memberState, true)
    }
    assert.deepStrictEqual(states(), all)
  })

  it("runs two tasks at once again after a time without tasks", () => {
    const pacing = TaskPacing.make()
    pacing.observe(status("operational"), 1_000)
    pacing.claimed(claimed(2))
    for (let task = 0; task < 2; task += 1) pacing.ended("SE", true)
    assert.deepStrictEqual(placesOf(pacing, 4_000), [4, 3_000])
    pacing.claimed([])
    assert.deepStrictEqual(placesOf(pacing, 5_000), [2, 4_000])
  })
})

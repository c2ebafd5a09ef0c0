import { assert, describe, it } from "@effect/vitest"
import { makeMemory } from "#domain/Memory.ts"

describe("a memory", () => {
  it("keeps the entries used last, and no more than it may", () => {
    const memory = makeMemory<number>(2)
    memory.remember("a", 1)
    memory.remember("b", 2)
    assert.strictEqual(memory.recall("a"), 1)
    memory.remember("c", 3)
    assert.deepStrictEqual([memory.recall("a"), memory.recall("b"), memory.recall("c")], [1, undefined, 3])
  })

  it("holds the newest value of a key, and forgets on request", () => {
    const memory = makeMemory<number>(2)
    memory.remember("a", 1)
    memory.remember("a", 2)
    memory.remember("b", 3)
    assert.deepStrictEqual([memory.recall("a"), memory.recall("b")], [2, 3])
    memory.forget("a")
    assert.isUndefined(memory.recall("a"))
  })
})

import { assert, describe, it } from "@effect/vitest"
import { makeMemory } from "#domain/kernel/LruCache.ts"

describe("a memory", () => {
  it("keeps the entries used last, and no more than it may", () => {
    const memory = makeMemory<number>(2)
    memory.remember("a", 1)
    memory.remember("b", 2)
    assert.strictEqual(memory.recall("a"), 1)
    memory.remember("c", 3)
    assert.deepStrictEqual([memory.recall("a"), memory.recall("b"), memory.recall("c")], [1, undefined, 3])
  })

  it("never holds more than it may, and always the half that was used last", () => {
    const capacity = 100
    const memory = makeMemory<number>(capacity)
    const keys = Array.from({ length: 1_000 }, (_, index) => String(index))
    for (const [index, key] of keys.entries()) {
      memory.remember(key, index)
      assert.strictEqual(memory.recall("0"), 0, "what is used all the time stays")
    }
    const lastUsed = keys.slice(1 - capacity / 2)
    assert.isTrue(lastUsed.every((key) => memory.recall(key) !== undefined))
    assert.isAtMost(keys.filter((key) => memory.recall(key) !== undefined).length, capacity)
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

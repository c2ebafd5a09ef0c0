import { assert, describe, it } from "@effect/vitest"
import { makeLruCache } from "#domain/concurrency/LruCache.ts"

describe("LruCache", () => {
  it("evicts the least recently used entry beyond its capacity", () => {
    const memory = makeLruCache<number>(2)
    memory.set("a", 1)
    memory.set("b", 2)
    assert.strictEqual(memory.get("a"), 1)
    memory.set("c", 3)
    assert.deepStrictEqual([memory.get("a"), memory.get("b"), memory.get("c")], [1, undefined, 3])
  })

  it("holds at most `capacity` entries, and at least the most recently used half of them", () => {
    const capacity = 100
    const memory = makeLruCache<number>(capacity)
    const keys = Array.from({ length: 1_000 }, (_, index) => String(index))
    for (const [index, key] of keys.entries()) {
      memory.set(key, index)
      assert.strictEqual(memory.get("0"), 0, "a recently used entry is kept")
    }
    const lastUsed = keys.slice(1 - capacity / 2)
    assert.isTrue(lastUsed.every((key) => memory.get(key) !== undefined))
    assert.isAtMost(keys.filter((key) => memory.get(key) !== undefined).length, capacity)
  })

  it("returns the newest value of a key until it is deleted", () => {
    const memory = makeLruCache<number>(2)
    memory.set("a", 1)
    memory.set("a", 2)
    memory.set("b", 3)
    assert.deepStrictEqual([memory.get("a"), memory.get("b")], [2, 3])
    memory.delete("a")
    assert.isUndefined(memory.get("a"))
  })
})

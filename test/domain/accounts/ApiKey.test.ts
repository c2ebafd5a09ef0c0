import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { crc32 } from "node:zlib"
import { fromEntropy, isWellFormed, prefixOf } from "#domain/accounts/ApiKey.ts"

/** Random bytes for one key, more than its number of characters. */
const entropyBytes = 64
const bytes = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const entropy = Arbitrary.array(Arbitrary.schema(bytes), { minLength: entropyBytes, maxLength: entropyBytes })

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base62 = (value: number): string => (value === 0 ? "" : base62(Math.floor(value / 62)) + alphabet.charAt(value % 62))

const keyOf = (values: ReadonlyArray<number>) => fromEntropy(Uint8Array.from(values)) ?? ""
const key = keyOf(Array.from({ length: entropyBytes }, (_, index) => index * 3))

describe("an API key", () => {
  it.prop("consists of svc_live_, 32 random characters and the CRC-32 of both", [entropy], ([values]) => {
    const made = fromEntropy(Uint8Array.from(values))
    if (made === null) return
    assert.match(made, /^svc_live_[0-9A-Za-z]{38}$/u)
    assert.strictEqual(made.slice(-6), base62(crc32(made.slice(0, -6))).padStart(6, "0"))
    assert.isTrue(isWellFormed(made))
  })

  it("contains each character of its alphabet about equally often", () => {
    const drawn = new Map<string, number>()
    for (let first = 0; first < 248; first += 1) {
      const character = keyOf(Array.from({ length: entropyBytes }, () => first)).charAt(9)
      drawn.set(character, (drawn.get(character) ?? 0) + 1)
    }
    assert.deepStrictEqual([...drawn.keys()].toSorted().join(""), [...alphabet].toSorted().join(""))
    assert.deepStrictEqual([...new Set(drawn.values())], [4])
  })

  it("is generated without those random bytes that would make some characters more frequent than others", () => {
    assert.isNull(fromEntropy(new Uint8Array(entropyBytes).fill(248)))
    assert.isNull(fromEntropy(new Uint8Array(31)))
    const late = new Uint8Array(entropyBytes).fill(255, 0, 32)
    assert.strictEqual(fromEntropy(late)?.slice(9, 41), "0".repeat(32))
  })

  it("is malformed if a character is changed, swapped, missing or added", () => {
    assert.isTrue(isWellFormed(key))
    for (let at = 9; at < key.length; at += 1) {
      const other = key.charAt(at) === "x" ? "y" : "x"
      const left = key.slice(0, at)
      assert.isFalse(isWellFormed(left + other + key.slice(at + 1)), `changed at ${at}`)
      assert.isFalse(isWellFormed(left + key.slice(at + 1)), `lost at ${at}`)
      assert.isFalse(isWellFormed(`${left}x${key.slice(at)}`), `added at ${at}`)
      if (key.charAt(at) === key.charAt(at + 1) || at === key.length - 1) continue
      assert.isFalse(isWellFormed(left + key.charAt(at + 1) + key.charAt(at) + key.slice(at + 2)), `swapped at ${at}`)
    }
  })

  it.each([
    "",
    "svc_live_",
    ` ${key}`,
    `${key}\n`,
    key.toLowerCase(),
    key.replace("svc_live_", "svc_test_"),
    "x".repeat(100_000)
  ])("cannot have the form %j", (text) => {
    assert.isFalse(isWellFormed(text))
  })

  it("has its first 12 characters as its prefix", () => {
    assert.strictEqual(prefixOf(key), key.slice(0, 12))
    assert.lengthOf(prefixOf(key), 12)
  })
})

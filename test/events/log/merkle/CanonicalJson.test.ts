import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { encode } from "#events/log/merkle/CanonicalJson.ts"

const canonical = (value: unknown) => Result.getOrThrow(encode(value))

/** Returns the reason why a value has no canonical form. */
const refusal = (value: unknown) => Result.getOrThrow(Result.flip(encode(value))).message

const decoded = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

const doubleFrom = (bits: string) => new DataView(Uint8Array.from(Buffer.from(bits, "hex")).buffer).getFloat64(0)

/** Reverses the key order of every object in a value. */
const reversed = (value: Schema.Json): Schema.Json => {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, inner]) => [key, reversed(inner)])
  )
}

describe("the encoder of canonical JSON", () => {
  it("writes the example of RFC 8785, sections 3.2.2 to 3.2.4, byte for byte", () => {
    const value = decoded(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`)
    const text = canonical(value)
    assert.strictEqual(
      text,
      `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA'B\\"\\\\\\\\\\"/"}`
    )
    assert.strictEqual(
      Buffer.from(text).toString("hex"),
      [
        "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b3333333333333333332e33333333333333",
        "2c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c75303030665c6e4127425c225c5c5c5c5c222f227d"
      ].join("")
    )
  })

  it("sorts keys by UTF-16 code units, as in the example of RFC 8785, section 3.2.3", () => {
    const value = {
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }
    const order = Array.from(canonical(value).matchAll(/:"(?<name>[^"]+)"/gu), (match) => match.groups?.["name"])
    assert.deepStrictEqual(order, [
      "Carriage Return",
      "One",
      "Control",
      "Latin Small Letter O With Diaeresis",
      "Euro Sign",
      "Emoji: Grinning Face",
      "Hebrew Letter Dalet With Dagesh"
    ])
  })

  it("sorts keys that look like numbers as text, at every depth", () => {
    const value = { 10: {}, 1: { f: { f: "hi", F: 5 }, "\n": 56 }, "": "empty", a: {}, 111: [{ e: "yes", E: "no" }], A: {} }
    assert.strictEqual(
      canonical(value),
      `{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}`
    )
  })

  it("writes the numbers in the examples of RFC 8785, appendix B", () => {
    const samples: ReadonlyArray<readonly [string, string]> = [
      ["0000000000000000", "0"],
      ["8000000000000000", "0"],
      ["0000000000000001", "5e-324"],
      ["8000000000000001", "-5e-324"],
      ["7fefffffffffffff", "1.7976931348623157e+308"],
      ["ffefffffffffffff", "-1.7976931348623157e+308"],
      ["4340000000000000", "9007199254740992"],
      ["c340000000000000", "-9007199254740992"],
      ["4430000000000000", "295147905179352830000"],
      ["44b52d02c7e14af5", "9.999999999999997e+22"],
      ["44b52d02c7e14af6", "1e+23"],
      ["44b52d02c7e14af7", "1.0000000000000001e+23"],
      ["444b1ae4d6e2ef4e", "999999999999999700000"],
      ["444b1ae4d6e2ef4f", "999999999999999900000"],
      ["444b1ae4d6e2ef50", "1e+21"],
      ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
      ["3eb0c6f7a0b5ed8d", "0.000001"],
      ["41b3de4355555553", "333333333.3333332"],
      ["41b3de4355555554", "333333333.33333325"],
      ["41b3de4355555555", "333333333.3333333"],
      ["41b3de4355555556", "333333333.3333334"],
      ["41b3de4355555557", "333333333.33333343"],
      ["becbf647612f3696", "-0.0000033333333333333333"],
      ["43143ff3c1cb0959", "1424953923781206.2"]
    ]
    for (const [bits, text] of samples) assert.strictEqual(canonical(doubleFrom(bits)), text)
    assert.strictEqual(
      refusal(doubleFrom("7fffffffffffffff")),
      "The value has no canonical JSON form at /: NaN is not a JSON number"
    )
    assert.strictEqual(
      refusal(doubleFrom("7ff0000000000000")),
      "The value has no canonical JSON form at /: Infinity is not a JSON number"
    )
  })

  it("writes text without Unicode normalisation and without needless escapes", () => {
    assert.strictEqual(canonical("A\u030a"), `"A\u030a"`)
    assert.strictEqual(canonical("\u007f\u0080\u2028\u2029</script>é😂"), `"\u007f\u0080\u2028\u2029</script>é😂"`)
    assert.strictEqual(canonical("\b\t\n\f\r\u0000\u001f"), String.raw`"\b\t\n\f\r\u0000\u001f"`)
  })

  it("accepts empty values, and keys with a special meaning in JavaScript", () => {
    assert.strictEqual(canonical([[], {}, "", null]), `[[],{},"",null]`)
    assert.strictEqual(
      canonical(decoded(`{"__proto__":{"b":1},"constructor":2,"toJSON":3}`)),
      `{"__proto__":{"b":1},"constructor":2,"toJSON":3}`
    )
    assert.strictEqual(canonical(Object.assign(Object.create(null), { b: 1, a: 2 })), `{"a":2,"b":1}`)
  })

  it("rejects values that JSON cannot represent, with their path", () => {
    assert.strictEqual(
      refusal({ a: [1, { b: Number.NaN }] }),
      "The value has no canonical JSON form at /a/1/b: NaN is not a JSON number"
    )
    assert.strictEqual(refusal(["\ud800"]), "The value has no canonical JSON form at /0: a lone surrogate has no UTF-8 form")
    assert.strictEqual(refusal("\udc00\ud800"), "The value has no canonical JSON form at /: a lone surrogate has no UTF-8 form")
    assert.strictEqual(
      refusal({ "k\udfff": 1 }),
      "The value has no canonical JSON form at /k\ufffd: a lone surrogate has no UTF-8 form"
    )
    assert.strictEqual(refusal({ a: undefined }), "The value has no canonical JSON form at /a: undefined is not JSON")
    assert.strictEqual(refusal(Array(1).concat(1)), "The value has no canonical JSON form at /0: undefined is not JSON")
    assert.strictEqual(refusal(1n), "The value has no canonical JSON form at /: bigint is not JSON")
    assert.strictEqual(
      refusal(() => 1),
      "The value has no canonical JSON form at /: function is not JSON"
    )
    for (const instance of [new Date(0), new Map(), new Uint8Array(1), Object("text")]) {
      assert.strictEqual(refusal({ instance }), "The value has no canonical JSON form at /instance: a class instance is not JSON")
    }
  })

  it("rejects cycles, and nesting so deep that it could exhaust the stack", () => {
    const nested = (depth: number) => Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 0)
    assert.strictEqual(canonical(nested(500)), `${"[".repeat(500)}0${"]".repeat(500)}`)
    assert.include(refusal(nested(501)), "nested more than 500 levels deep")
    assert.include(refusal(nested(100_000)), "nested more than 500 levels deep")
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    assert.include(refusal(cycle), "nested more than 500 levels deep")
  })

  it.prop("writes JSON that is encoded to the same text again after parsing", [Schema.Json], ([value]) => {
    const written = encode(value)
    // Skips generated values with a lone surrogate, because they have no canonical form.
    if (Result.isFailure(written)) return
    const read = decoded(written.success)
    assert.strictEqual(canonical(read), written.success)
    assert.deepStrictEqual(JSON.stringify(read), JSON.stringify(JSON.parse(written.success)))
  })

  it.prop("writes the same text for any order of the keys", [Schema.Json], ([value]) => {
    assert.deepStrictEqual(Result.getSuccess(encode(reversed(value))), Result.getSuccess(encode(value)))
  })
})

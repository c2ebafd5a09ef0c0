import { TestClock } from "effect/testing"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Matches a UUID of version 7 with the variant bits of RFC 9562. */
const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u

const millisOf = (id: string) => Number.parseInt(id.replace("-", "").slice(0, 12), 16)

layer(NodeCrypto.layer)("the generator of random values", (it) => {
  it.effect("creates increasing and unique UUIDs of version 7, even a thousand in one millisecond", function* () {
    const crypto = yield* Crypto
    const ids = Array.from({ length: 20_000 }, () => crypto.uuidV7())
    for (const id of ids) assert.match(id, uuidV7)
    assert.deepStrictEqual(ids.toSorted(), ids)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it.effect("writes the time of the clock into a UUID", function* () {
    const crypto = yield* Crypto
    yield* TestClock.setTime(1_763_719_200_000)
    assert.strictEqual(millisOf(crypto.uuidV7()), 1_763_719_200_000)
  })

  it.effect("returns the requested number of random bytes, which differ each time", function* () {
    const crypto = yield* Crypto
    const sizes = [0, 1, 16, 32, 8_191, 8_192, 8_193, 100_000]
    const drawn = sizes.map(crypto.randomBytes)
    assert.deepStrictEqual(
      drawn.map((bytes) => bytes.length),
      sizes
    )
    const pieces = Array.from({ length: 2_000 }, () => crypto.randomBytes(16))
    assert.strictEqual(new Set(pieces.map((bytes) => Buffer.from(bytes).toString("hex"))).size, 2_000)
  })
})

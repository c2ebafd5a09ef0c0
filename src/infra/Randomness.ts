/** Randomness from Node's OpenSSL, drawn in larger pieces: asking for it costs more than making it. */
import { randomFillSync } from "node:crypto"
import { Clock, Effect, Layer } from "effect"
import { Randomness } from "#domain/Randomness.ts"

const poolBytes = 8_192

/** Bytes of a pool that is filled when it is empty; each is given out once, and wiped. */
const makePool = () => {
  const pool = Buffer.alloc(poolBytes)
  let next = poolBytes
  return (count: number): Uint8Array<ArrayBuffer> => {
    const bytes = new Uint8Array(count)
    if (count > poolBytes) return randomFillSync(bytes)
    if (next + count > poolBytes) {
      randomFillSync(pool)
      next = 0
    }
    bytes.set(pool.subarray(next, next + count))
    pool.fill(0, next, next + count)
    next += count
    return bytes
  }
}

/** Ids of one millisecond count up from a random number of 11 bits, in 12 bits; the 4096th borrows the next millisecond. */
const counterBits = 12

/** RFC 9562, 5.7, with the counter of 6.2, method 1 (read 2026-11). */
const makeUuidV7 = (draw: (count: number) => Uint8Array<ArrayBuffer>, nowMs: () => number) => {
  let lastMs = 0
  let counter = 0
  return (): string => {
    const random = Buffer.from(draw(10).buffer)
    const now = nowMs()
    if (now > lastMs) {
      lastMs = now
      counter = random.readUInt16BE(8) >>> (16 - counterBits + 1)
    } else {
      counter += 1
      if (counter >>> counterBits > 0) {
        lastMs += 1
        counter = random.readUInt16BE(8) >>> (16 - counterBits + 1)
      }
    }
    const time = lastMs.toString(16).padStart(12, "0")
    const tail = random.toString("hex", 0, 8)
    const variant = (8 + (random.readUInt8(8) & 3)).toString(16)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, "0")}-${variant}${tail.slice(0, 3)}-${tail.slice(3, 15)}`
  }
}

export const layer = Layer.effect(
  Randomness,
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const draw = makePool()
    const uuidV7Unsafe = makeUuidV7(draw, () => clock.currentTimeMillisUnsafe())
    return { bytes: (count) => Effect.sync(() => draw(count)), uuidV7: Effect.sync(uuidV7Unsafe), uuidV7Unsafe }
  })
)

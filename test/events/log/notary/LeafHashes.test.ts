import { Effect, Layer, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LeafHashes from "#events/log/notary/LeafHashes.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"

const testLayer = MigratedDatabase.layer.pipe(Layer.provideMerge(NodeCrypto.layer))

interface Row {
  readonly stream: string
  readonly type: string
  readonly meter: string | null
  readonly at: string
  readonly odd: boolean
  readonly data: string
}

const plain: Row = { stream: "key-1", type: "Odd", meter: null, at: "2026-11-21T09:30:00.1Z", odd: false, data: "{}" }

/** Stores rows with any content at consecutive positions from `from`, as the owner of the table. */
const store = Effect.fnUntraced(function* (from: number, rows: ReadonlyArray<Row>) {
  yield* MigratedDatabase.asAdministrator(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      for (const [index, { at, data, meter, odd, stream, type }] of rows.entries()) {
        const position = from + index
        yield* sql`INSERT INTO vatproof.events VALUES (0, ${position}, ${stream}, ${position + 1}, gen_random_uuid(), ${type}, 1,
          ${at}::timestamptz, clock_timestamp(), gen_random_uuid(), ${odd ? "019371c0-5f00-7000-8000-0000000000aa" : null}::uuid,
          ${odd ? new Uint8Array(16).fill(7) : null}::bytea, ${meter}, ${odd ? 1 : 0}, ${data}, '{"request_id":"é"}')`
      }
    })
  )
})

/** Returns the leaf hashes that the database computes, and those that a verifier computes from the events. */
const bothWays = Effect.fnUntraced(function* (from: number, to: number) {
  const find = yield* LeafHashes.make
  const stored = yield* (yield* EventStore).read(from, to - from)
  return {
    found: yield* find({ from, to }),
    computed: Result.getOrThrow(leafHashes(NodeCrypto.pureCrypto, stored, { from, to }))
  }
})

layer(testLayer, { excludeTestServices: true })("LeafHashes", (it) => {
  it.effect("returns the same leaf hashes from the database as a verifier computes from the events", function* () {
    const escaped = Array.from({ length: 0x80 }, (_, code) => String.fromCharCode(code))
      .slice(1)
      .join("")
    const times = [
      "2026-11-21T09:30:00Z",
      "2026-12-31T23:59:59.999999Z",
      "2026-03-29T01:30:00.000001+02:00",
      "0001-01-01T00:00:00Z"
    ]
    yield* store(0, [
      plain,
      ...times.map((at) => ({ ...plain, at, odd: true })),
      { ...plain, stream: escaped, type: `"\\/€😀\u2028\u007f\u0080\uFFFF`, meter: escaped, data: `{"a":"ü€😀"}` },
      { ...plain, stream: "", meter: "" },
      { ...plain, stream: "x".repeat(2048), type: "\u0001".repeat(2048), meter: "\\".repeat(2048) }
    ])
    const { computed, found } = yield* bothWays(0, 8)
    assert.deepStrictEqual(found.map(hex), computed.map(hex))
    assert.deepStrictEqual((yield* bothWays(3, 5)).found.map(hex), computed.slice(3, 5).map(hex))
  })

  it.effect("returns the same leaf hashes as a verifier computes, for long texts of multibyte characters", function* () {
    yield* store(20, [{ ...plain, stream: "€".repeat(2048) }])
    const { computed, found } = yield* bothWays(20, 21)
    assert.deepStrictEqual(found.map(hex), computed.map(hex))
  })

  it.effect("fails with an error that names the missing event or the malformed field", function* () {
    const find = yield* LeafHashes.make
    yield* store(40, [plain, plain, { ...plain, stream: "x".repeat(2049) }, plain, plain])
    const malformed = yield* Effect.flip(find({ from: 40, to: 45 }))
    assert.strictEqual(malformed.message, "The event at position 42 has a malformed stream_id")
    yield* tamper("DELETE FROM vatproof.events WHERE position = 41")
    assert.strictEqual((yield* Effect.flip(find({ from: 40, to: 42 }))).message, "The event at position 41 is missing")
    assert.strictEqual((yield* Effect.flip(find({ from: 43, to: 46 }))).message, "The event at position 45 is missing")
  })

  let next = 100
  const texts = Schema.Array(Schema.String.check(Schema.isMaxLength(40))).check(Schema.isMaxLength(5))
  it.effect.prop("returns the same leaf hashes as a verifier computes, for any text", { texts }, (given) =>
    Effect.gen(function* () {
      const from = next
      next += given.texts.length
      const kept = given.texts.map((each) => each.toWellFormed().replaceAll("\u0000", ""))
      yield* store(
        from,
        kept.map((each) => ({ ...plain, stream: `odd-${from}`, type: each, meter: each }))
      )
      const { computed, found } = yield* bothWays(from, next)
      assert.deepStrictEqual(found.map(hex), computed.map(hex))
    })
  )
})

const hex = (hash: Uint8Array) => Buffer.from(hash).toString("hex")

/** Tests the retries of the event store: of a batch whose response was lost, and of a batch with an event that is already stored. */
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { AppendCommand } from "#events/log/store/AppendCommand.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const lost = new SqlError({
  reason: new ConnectionError({ cause: new Error("reset"), message: "reset", operation: "query" })
})

/** Makes an event store that loses its first `losses` responses, and whose first events get the ids `eventIds`. */
const makeStore = Effect.fnUntraced(function* (losses: number, eventIds: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  let calls = 0
  const deaf = new Proxy(sql, {
    get: (target, key) =>
      key === "unsafe"
        ? (text: string, values: ReadonlyArray<unknown>) => {
            calls += 1
            const call = target.unsafe(text, values)
            return calls <= losses ? Effect.andThen(call, Effect.fail(lost)) : call
          }
        : Reflect.get(target, key)
  })
  const ids = [...eventIds]
  const next = () => ids.shift() ?? SecureRandom.uuidV7Unsafe()
  const scripted = Layer.succeed(Crypto, { ...pureCrypto, randomBytes: (count) => new Uint8Array(count), uuidV7: next })
  const store = yield* Effect.map(
    Layer.build(Layer.fresh(EventStore.layer).pipe(Layer.provide([scripted, Layer.succeed(SqlClient.SqlClient, deaf)]))),
    Context.get(EventStore)
  )
  return { store, calls: Effect.sync(() => calls) }
})

const commandFor = (stream: string): AppendCommand => ({
  stream,
  expectedVersion: 0,
  events: [{ type: "Tested", schemaVersion: 1, data: {} }],
  charge: { meter: stream, units: 1, cap: 1 },
  minute: { bucket: stream, limit: 1 }
})

/** Returns the events, meters and rate windows of some streams. */
const stored = (streams: string) =>
  texts(`SELECT concat_ws(' ', stream_id, version, units) AS text FROM vatproof.events WHERE stream_id LIKE '${streams}' UNION ALL
    SELECT concat_ws(' ', 'meter', meter_id, used) FROM vatproof.meters WHERE meter_id LIKE '${streams}' AND used > 0 UNION ALL
    SELECT concat_ws(' ', 'minute', bucket, taken) FROM vatproof.rate_windows WHERE bucket LIKE '${streams}' AND taken > 0 ORDER BY 1`)

layer(Layer.merge(MigratedDatabase.layer, SecureRandom.layerWebCrypto), { excludeTestServices: true })(
  "the event store",
  (it) => {
    it.effect("stores and charges a command once, even if the database's response to the commit is lost", function* () {
      const { calls, store } = yield* makeStore(2, [])
      const appended = yield* store.append(commandFor("lost"))
      assert.deepStrictEqual(appended, { position: 0, used: 1, minute: null, isDuplicate: true })
      assert.strictEqual(yield* calls, 3)
      assert.deepStrictEqual(yield* stored("lost"), ["lost 1 1", "meter lost 1", "minute lost 1"])
    })

    it.effect(
      "sends the commands of a group commit to the database again if one of them is already stored, and stores only the other commands",
      function* () {
        const id = SecureRandom.uuidV7Unsafe()
        const { calls, store } = yield* makeStore(0, [id, id])
        const first = yield* store.append(commandFor("again-1"))
        assert.strictEqual(yield* calls, 1)
        const appended = yield* Effect.forEach(["again-2", "again-3"], (stream) => store.append(commandFor(stream)), {
          concurrency: "unbounded"
        })
        assert.strictEqual(yield* calls, 3)
        // The command for again-2 has the event id of again-1, so it gets the result of again-1.
        assert.deepStrictEqual(appended, [
          { position: first.position, used: 0, minute: null, isDuplicate: true },
          { position: first.position + 1, used: 1, minute: appended[1]?.minute ?? null, isDuplicate: false }
        ])
        assert.deepStrictEqual(yield* stored("again-%"), [
          "again-1 1 1",
          "again-3 1 1",
          "meter again-1 1",
          "meter again-3 1",
          "minute again-1 1",
          "minute again-3 1"
        ])
      }
    )

    it.effect("treats the second of two commands with the same event id in one group commit as a duplicate", function* () {
      const id = SecureRandom.uuidV7Unsafe()
      const { store } = yield* makeStore(0, [id, id])
      const streams = ["twice-1", "twice-2", "twice-3"]
      const appended = yield* Effect.forEach(streams, (stream) => store.append(commandFor(stream)), {
        concurrency: "unbounded"
      })
      assert.strictEqual(appended[0]?.position, appended[1]?.position)
      assert.deepStrictEqual(
        (yield* stored("twice-%")).filter((row) => row.startsWith("twice")),
        ["twice-1 1 1", "twice-3 1 1"]
      )
    })
  }
)

import { DateTime, Effect, Layer } from "effect"
import { BatchAccepted, BatchCompleted, BatchItemsAccepted } from "#domain/pending/Batch.ts"
import { BatchStore } from "#domain/pending/BatchStore.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as PgBatchStore from "#events/pending/PgBatchStore.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const [account_id, key_id] = ["019371c0-5f00-7000-8000-0000000000ac", "019371c0-5f00-7000-8000-0000000000a1"]
const [open, mixed, ended, spooled, unknown] = [1, 2, 3, 4, 5].map((number) => `019371c0-5f00-7000-8000-0000000000b${number}`)

const first = "00000000-0000-0000-0000-000000000000"

const appendBatch = (batch_id: string | undefined, vat_ids: ReadonlyArray<string>) => {
  const facts = { batch_id: batch_id ?? "", account_id, key_id, expires_at: DateTime.makeUnsafe("2100-01-01T00:00:00Z") }
  const accepted = BatchAccepted.make({
    ...facts,
    items: vat_ids.length,
    malformed: 0,
    duplicates: 0,
    chunks: [],
    request_hash: null
  })
  const events = [accepted, BatchItemsAccepted.make({ ...facts, first: 0, vat_ids, duplicate_of: {} })] as const
  return Effect.flatMap(EventStore, (store) =>
    store.append({ stream: `key-${key_id}`, expectedVersion: null, events, charge: null })
  )
}

const store = PgBatchStore.layer.pipe(
  Layer.provideMerge(MigratedDatabase.layer),
  Layer.provide([NodeCrypto.layer, Integrity.layer])
)

layer(store, { excludeTestServices: true })("The store of batches", (it) => {
  it.effect("returns the progress of the requested batch to each of 500 concurrent clients", function* () {
    const { count, isOpen } = yield* BatchStore
    yield* appendBatch(open, ["SE556000000001", "SE556000000002", "FI10999301"])
    yield* appendBatch(mixed, ["SE556000000003", "SE556000000004"])
    yield* appendBatch(ended, ["SE556000000005"])
    const close = (which: string) =>
      MigratedDatabase.execute(`UPDATE vatproof.tasks SET closed_by = 0, state = 'final' WHERE ${which}`)
    yield* close(`batch_id = '${mixed}' AND item = 0`)
    yield* close(`batch_id = '${ended}'`)
    yield* MigratedDatabase.execute(`UPDATE vatproof.tasks SET failure = 'QUOTA' WHERE batch_id = '${open}' AND item = 0`)
    yield* MigratedDatabase.execute(`INSERT INTO vatproof.uploads (upload_id, account_id, batch_id, chunk, items)
      VALUES ('${spooled}', '${account_id}', '${spooled}', 0, '{}')`)

    const none = { final: 0, expired: 0, cancelled: 0, waitForQuota: 0, open: 0, slowest: { open: 0, final: 0 } }
    const expected = [
      [open, true, { ...none, waitForQuota: 1, open: 3, slowest: { open: 2, final: 0 } }],
      [mixed, true, { ...none, final: 1, open: 1, slowest: { open: 1, final: 1 } }],
      [ended, false, { ...none, final: 1 }],
      [spooled, true, none],
      [unknown, false, none]
    ]
    const read = (id = "") => Effect.all([Effect.succeed(id), isOpen(id), count(id)], { concurrency: 3 })
    const clients = Array.from({ length: 500 }, (_, client) => expected[client % expected.length] ?? [])
    const progress = yield* Effect.forEach(clients, ([id]) => read(String(id)), { concurrency: "unbounded" })
    assert.deepStrictEqual<unknown>(progress, clients)
  })

  it.effect("records the completion of a batch once, whatever number of replicas sees its end", function* () {
    const { completeNext } = yield* BatchStore
    const { readStream } = yield* EventStore
    yield* Effect.all(
      Array.from({ length: 8 }, () => completeNext(first)),
      { concurrency: 8 }
    )
    const stored = (yield* readStream(`key-${key_id}`, 0, 100)).filter(({ type }) => type === BatchCompleted.type)
    const facts = { account_id, batch_id: ended, cancelled: 0, expired: 0, final: 1, key_id }
    assert.deepStrictEqual(
      stored.map(({ data }) => data),
      [JSON.stringify(facts)]
    )
    assert.deepStrictEqual(yield* completeNext(first), { keyIds: [], last: null })
  })

  it.effect("reports no open batch for an id that is not a UUID", function* () {
    const { isOpen } = yield* BatchStore
    assert.isFalse(yield* isOpen("x"))
  })
})

import { DateTime, Duration, Effect, Layer } from "effect"
import { Integrity } from "#domain/log/Integrity.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import { type BatchChunk, BatchSpool } from "#domain/pending/BatchSpool.ts"
import * as PgBatchSpool from "#events/pending/PgBatchSpool.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { texts } from "#test/support/Batches.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const id = (last: string) => `019371c0-5f00-7000-8000-0000000000${last}`
const none = id("00")

const chunkOf = (customId: string): BatchChunk => ({
  questions: { vat_ids: ["SE556000000001"], duplicate_of: {} },
  document: { custom_ids: [customId], malformed: [null] }
})

/** Spools an upload of two chunks. Returns their digests. */
const spool = Effect.fnUntraced(function* (uploadId: string) {
  const { keep } = yield* BatchSpool
  return yield* Effect.forEach([0, 1], (chunk) => keep(uploadId, id("ac"), chunk, chunkOf(`custom ${chunk}`)))
})

const accept = Effect.fnUntraced(function* (uploadId: string, batchId: string, chunks: ReadonlyArray<string>) {
  const now = yield* DateTime.now
  const period = billingPeriod(now)
  const facts = { accountId: id("ac"), keyId: id("a1"), plan: "free", epoch: 0, stream: `key-${id("a1")}`, meter: "m" } as const
  const caller = {
    _tag: "Key",
    ...facts,
    period,
    validUntil: period.end,
    isFormer: false,
    used: 0,
    limit: 10,
    perMinute: 10
  } as const
  const counts = { chunks, items: 2, malformed: 0, duplicates: 0, hasDetails: false, maxAge: null }
  const batch = { ...counts, batchId, uploadId, caller, expiresAt: period.end, requestHash: null }
  return yield* (yield* BatchSpool).accept(batch)
})

const spooled = texts("SELECT chunk::text AS text FROM vatproof.uploads ORDER BY chunk")
const stored = texts(
  "SELECT vatproof.json_of(data) ->> 'first' AS text FROM vatproof.events WHERE type = 'BatchItemsAccepted' ORDER BY position"
)
const documents = texts(
  "SELECT vatproof.json_of(document) ->> 'custom_ids' AS text FROM vatproof.personal_documents ORDER BY position"
)

const store = PgBatchSpool.layer.pipe(
  Layer.provideMerge(MigratedDatabase.layer),
  Layer.provide(NodeCrypto.layer),
  Layer.provideMerge(Integrity.layer)
)

layer(store, { excludeTestServices: true })("The spool of uploaded batches", (it) => {
  it.effect(
    "accepts only the first of two uploads with the same batch id, and rejects an upload with a missing chunk",
    function* () {
      const digests = yield* spool(id("01"))
      yield* MigratedDatabase.execute("DELETE FROM vatproof.uploads WHERE chunk = 0")
      assert.strictEqual((yield* Effect.flip(accept(id("01"), id("ba"), digests)))._tag, "StoreUnavailable")
      const { discard, openNext } = yield* BatchSpool
      assert.isNull(yield* openNext(none))
      yield* discard(id("01"))
      yield* spool(id("02"))
      assert.isTrue(yield* accept(id("02"), id("ba"), digests))
      yield* spool(id("03"))
      assert.isFalse(yield* accept(id("03"), id("ba"), digests))
      yield* discard(id("03"))
      yield* discard(id("02"))
      assert.deepStrictEqual(yield* spooled, ["0", "1"])
    }
  )

  it.effect(
    "moves each chunk to the log once and in order under concurrent calls, without documents that were erased in the spool",
    function* () {
      const { openNext } = yield* BatchSpool
      yield* MigratedDatabase.execute("UPDATE vatproof.uploads SET document = NULL WHERE chunk = 1")
      yield* Effect.all(
        Array.from({ length: 6 }, () => openNext(none)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([yield* stored, yield* spooled], [["0", "500"], []])
      assert.deepStrictEqual(yield* documents, ['["custom 0"]'])
    }
  )

  it.effect("releases the items of a chunk, and does not wait for an item that an append is closing", function* () {
    const { keep, openNext, release } = yield* BatchSpool
    const questions = { vat_ids: ["SE556000000002", "SE556000000003"], duplicate_of: {} }
    const digest = yield* keep(id("04"), id("ac"), 0, {
      questions,
      document: { custom_ids: ["a", "b"], malformed: [null, null] }
    })
    yield* accept(id("04"), id("bb"), [digest])
    const chunk = yield* openNext(none)
    assert(chunk !== null)
    const first = `SELECT FROM vatproof.tasks WHERE batch_id = '${id("bb")}' AND item = 0 FOR UPDATE`
    yield* MigratedDatabase.whileLocked(first, release(chunk, Duration.zero, null))
    const released = texts(`SELECT item::text AS text FROM vatproof.tasks WHERE batch_id = '${id("bb")}' AND due_at <= now()`)
    assert.deepStrictEqual(yield* released, ["1"])
  })

  const inserted = (batch: string, chunk: number, upload = id("99")) =>
    `INSERT INTO vatproof.uploads (upload_id, chunk, account_id, batch_id, items) VALUES ('${upload}', ${chunk}, '${id("ac")}', '${batch}',
      '{"vat_ids":["SE556000000001"],"duplicate_of":{}}')`
  const ofBatch = (batch: string) => `vatproof.uploads WHERE batch_id = '${batch}'`

  const forgeries: ReadonlyArray<
    readonly [name: string, opened: number, change: (batch: string) => ReadonlyArray<string>, altered: string]
  > = [
    ["a chunk was added", 2, (batch) => [inserted(batch, 2)], "chunk 2"],
    ["a chunk was spooled again", 2, (batch) => [inserted(batch, 0)], "chunk 0"],
    [
      "a chunk was changed",
      1,
      (batch) => [`UPDATE ${ofBatch(batch).replace(" WHERE", " SET items = replace(items, 'SE55', 'SE56') WHERE")}`],
      "chunk 1"
    ],
    ["a chunk is missing", 0, (batch) => [`DELETE FROM ${ofBatch(batch)} AND chunk = 0`], "chunk 1"],
    [
      "the batch does not exist",
      0,
      (batch) => [`UPDATE ${ofBatch(batch).replace(" WHERE", ` SET batch_id = '${id("0f")}' WHERE`)}`],
      id("0f")
    ],
    [
      "the event of the batch was changed",
      0,
      (batch) => [`UPDATE vatproof.batches SET position = 0 WHERE batch_id = '${batch}'`],
      "chunk 0"
    ]
  ]

  it.effect.each(forgeries.map((forgery, index) => [...forgery, index] as const))(
    "opens no chunk if %s, reports it, and continues with other batches",
    function* ([_, opened, change, altered, index]) {
      const { openNext } = yield* BatchSpool
      const [batch, other] = [id(`${index}2`), id(`${index}e`)]
      yield* accept(id(`${index}3`), batch, yield* spool(id(`${index}3`)))
      yield* Effect.repeat(openNext(none), { times: opened - 1 }).pipe(Effect.when(Effect.succeed(opened > 0)))
      for (const statement of change(batch)) yield* MigratedDatabase.execute(statement)
      yield* accept(id(`${index}4`), other, yield* spool(id(`${index}4`)))
      const before = (yield* stored).length
      assert.isNull(yield* openNext(none))
      const next = [yield* openNext(none), yield* openNext(none), yield* openNext(none)]
      assert.deepStrictEqual(
        next.map((chunk) => chunk?.batchId ?? null),
        [other, other, null]
      )
      assert.strictEqual((yield* stored).length, before + 2)
      assert.include((yield* (yield* Integrity).report).altered.at(-1), altered)
      const setAside =
        "SELECT chunk::text AS text FROM vatproof.uploads WHERE batch_id IS NULL AND spooled_at > now() + interval '29 days'"
      assert.isNotEmpty(yield* texts(setAside))
      yield* MigratedDatabase.execute("DELETE FROM vatproof.uploads")
    }
  )
})

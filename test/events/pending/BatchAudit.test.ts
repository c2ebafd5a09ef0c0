import * as NodeServices from "@effect/platform-node/NodeServices"
import { DateTime, Effect, Layer } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { BatchAccepted, BatchItemsAccepted } from "#domain/pending/Batch.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import { digestOf } from "#events/pending/ChunkDigest.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import * as SchemaOfProgram from "#test/support/SchemaOfProgram.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import { assert, layer } from "#test/support/Test.ts"
import { signer } from "#test/support/log/Keys.ts"

const id = (last: string) => `019371c0-5f00-7000-8000-0000000000${last}`
const [account_id, key_id] = [id("ac"), id("a1")]
const expires_at = DateTime.makeUnsafe("2100-01-01T00:00:00Z")
const questions = { vat_ids: ["SE556000000001", null, "SE556000000001"], duplicate_of: { 2: 0 } }
const counts = { items: 3, malformed: 1, duplicates: 1 }
const chunks = [digestOf(pureCrypto, questions)]

type Accepted = Partial<Parameters<typeof BatchAccepted.make>[0]>
type Items = Partial<Parameters<typeof BatchItemsAccepted.make>[0]>

const different = "the items of the batch differ from the items that were accepted"
const other = { vat_ids: ["SE556000000002"], duplicate_of: {} }

const malformed = { vat_ids: [null], duplicate_of: {} }
const repeated = [malformed, malformed].map((one) => digestOf(pureCrypto, one))

/** Batches, each with the findings that the verification reports about it. */
const batches: ReadonlyArray<
  readonly [name: string, accepted: Accepted | null, items: ReadonlyArray<Items>, findings: ReadonlyArray<string>]
> = [
  ["an intact batch", {}, [{}], []],
  ["a batch whose items are not in the log yet", {}, [], []],
  ["a batch with an added chunk", {}, [{}, { ...other, first: 500 }], [different]],
  ["a batch with a repeated chunk", { chunks: repeated }, [malformed, malformed], [different]],
  ["a batch with a changed item", {}, [other], [different]],
  ["a batch whose first chunk is missing", { chunks: [...chunks, ...chunks] }, [{ first: 500 }], [different]],
  ["a batch whose items belong to another key", {}, [{ key_id: id("a2") }], [different]],
  ["a batch whose items belong to another account", {}, [{ account_id: id("ad") }], [different]],
  ["items without a batch", null, [{}], [different]],
  [
    "a batch with another number of items",
    { items: 4 },
    [{}],
    ["the number of items of the batch differs from the number that was accepted"]
  ],
  ["a batch that has the id of another batch", { batch_id: id("ff") }, [], ["the event has the id of another batch"]]
]

const appended = Effect.gen(function* () {
  const events = yield* EventStore
  const expected: Array<string> = []
  let last = 0
  for (const [index, [, accepted, items, findings]] of batches.entries()) {
    const facts = { batch_id: id(`b${index.toString(16)}`), account_id, key_id, expires_at }
    const all = [
      ...(accepted === null ? [] : [BatchAccepted.make({ ...facts, ...counts, chunks, request_hash: null, ...accepted })]),
      ...items.map((more) => BatchItemsAccepted.make({ ...facts, first: 0, ...questions, ...more }))
    ]
    for (const event of all) {
      const identities = event.type === BatchAccepted.type ? [{ eventId: facts.batch_id, causationId: null }] : undefined
      const command = { stream: `key-${key_id}`, expectedVersion: null, events: [event] as const, charge: null, identities }
      last = (yield* events.append(command)).position
    }
    expected.push(...findings.map((finding) => `${last}: ${finding}`))
  }
  yield* SignedLog.sign(last + 1)
  return expected
})

layer(Layer.mergeAll(SignedLog.layer, logCatalogue, NodeServices.layer), { excludeTestServices: true })(
  "The verification of batches",
  (it) => {
    it.effect("reports items that differ from those that the batch accepted, in both modes", function* () {
      const expected = yield* appended
      for (const isFast of [false, true]) {
        const schema = yield* SchemaOfProgram.comparison
        const report = yield* DatabaseAudit.run({ verifiers: [signer], kept: [], schema, isFast, progress: () => Effect.void })
        assert.deepStrictEqual(
          report.findings.filter(({ table }) => table === undefined).map(({ message, position }) => `${position}: ${message}`),
          expected
        )
      }
    })
  }
)

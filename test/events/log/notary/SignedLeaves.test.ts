import { Context, Effect, Layer, Schema } from "effect"
import { HttpClient } from "effect/http"
import { checkpointOf, newAuditor, signing, temporaryFolder } from "#test/support/Auditing.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as PaidKey from "#test/support/PaidKey.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

/** Starts a service that signs its log, and issues a receipt. `readAll` reads the receipt from each endpoint that shows it. */
const receiptWithReaders = Effect.gen(function* () {
  const adminPort = yield* RunningService.freePort
  const folder = yield* temporaryFolder
  const service = yield* RunningService.start({ ...signing(folder), ADMIN_PORT: String(adminPort) })
  const key = yield* PaidKey.newPaidKey(service)
  const receiptId = yield* PaidKey.receiptIdOf(yield* PaidKey.confirm(service, "DE123456789", key))
  const { position } = yield* Rows.one(
    { position: Schema.BigInt },
    (sql) => sql`SELECT position FROM vatproof.events WHERE stream_id = ${`receipt-${receiptId}`}`
  )
  yield* checkpointOf(service, Number(position) + 1)
  const { headers } = yield* newAuditor()
  const owner = { "x-api-key": key }
  const reads = [
    [`${PaidKey.receiptsPath}/${receiptId}`, owner],
    [PaidKey.receiptsPath, owner],
    [`/v1/audit/proofs/${receiptId}`, owner],
    [`/v1/audit/proofs/${position}`, headers],
    [`/v1/audit/events/${position}`, headers],
    [`/v1/audit/events?receipt_id=${receiptId}`, headers]
  ] as const
  const readAll = Effect.forEach(reads, ([path, headers]) => service.get(path, { headers }))
  const http = yield* HttpClient.HttpClient
  const admin = (path: string) => http.get(`http://127.0.0.1:${adminPort}${path}`)
  return { service, admin, position, readAll }
})

/** Returns the number of findings in events, which the services of other tests in this process also count. */
const countIn = (metrics: string) =>
  Number(/^vatproof_evidence_altered_total\{vatproof_evidence="event"\} (\d+)$/mu.exec(metrics)?.[1])

class SignedReceipt extends Context.Service<SignedReceipt, Effect.Success<typeof receiptWithReaders>>()(
  "vatproof/test/SignedReceipt"
) {}

const testLayer = Layer.effect(SignedReceipt, receiptWithReaders).pipe(Layer.provideMerge(RunningService.layerGround))

/** HTTP statuses after a change of the receipt's personal document. The list of receipts has no personal data, so its status is 200. */
const withDocument = [500, 200, 500, 500, 500, 500]
const all = [500, 500, 500, 500, 500, 500]

const attacks: ReadonlyArray<
  readonly [
    name: string,
    statuses: ReadonlyArray<number>,
    change: (position: bigint) => string,
    undo: (position: bigint) => string
  ]
> = [
  [
    "whose personal document was changed",
    withDocument,
    (position) =>
      `UPDATE vatproof.personal_documents SET document = replace(document, 'Muster', 'Master') WHERE position = ${position}`,
    (position) =>
      `UPDATE vatproof.personal_documents SET document = replace(document, 'Master', 'Muster') WHERE position = ${position}`
  ],
  [
    "whose bytes were changed",
    all,
    (position) => `UPDATE vatproof.events SET data = replace(data, 'evatr-0000', 'evatr-0001') WHERE position = ${position}`,
    (position) => `UPDATE vatproof.events SET data = replace(data, 'evatr-0001', 'evatr-0000') WHERE position = ${position}`
  ],
  [
    "whose leaf was removed",
    all,
    () => "CREATE TABLE public.kept_tiles AS TABLE vatproof.tiles; DELETE FROM vatproof.tiles WHERE level = 0",
    () => "INSERT INTO vatproof.tiles TABLE public.kept_tiles ON CONFLICT DO NOTHING"
  ]
]

layer(testLayer, { excludeTestServices: true })("a service with altered evidence", (it) => {
  it.effect(
    "responds with EVIDENCE_ALTERED on each endpoint that shows the altered data, and reports the event to operators",
    function* () {
      const { admin, position, readAll } = yield* SignedReceipt
      const before = countIn(yield* (yield* admin("/metrics")).text)
      for (const [name, statuses, change, undo] of attacks) {
        assert.deepStrictEqual(
          (yield* readAll).map(({ status }) => status),
          [200, 200, 200, 200, 200, 200],
          name
        )
        yield* tamper(change(position))
        const replies = yield* readAll
        assert.deepStrictEqual(
          replies.map(({ status }) => status),
          statuses,
          name
        )
        for (const { body } of replies.filter(({ status }) => status === 500))
          assert.containSubset(body, { error: { code: "EVIDENCE_ALTERED" } }, name)
        yield* tamper(undo(position))
      }
      const ready = yield* admin("/readyz")
      assert.strictEqual(ready.status, 200)
      assert.containSubset(yield* ready.json, {
        altered: [`The event at position ${position} differs from the signed event`]
      })
      assert.strictEqual(countIn(yield* (yield* admin("/metrics")).text) - before, 17)
    }
  )

  it.effect("responds with EVIDENCE_ALTERED if a cached answer was copied to another VAT ID", function* () {
    const { service } = yield* SignedReceipt
    const { status } = yield* service.validate("ATU12345685")
    yield* service.validate("PL1234567890")
    yield* MigratedDatabase.execute(`UPDATE vatproof.latest AS l SET position = o.position, answer = o.answer
        FROM vatproof.latest o WHERE l.key = 'answer-ATU12345685' AND o.key = 'answer-PL1234567890'`)
    const altered = yield* service.validate("ATU12345685")
    assert.deepStrictEqual([status, altered.status], [200, 500])
    assert.containSubset(altered.body, { error: { code: "EVIDENCE_ALTERED" } })
    assert.strictEqual((yield* service.validate("PL1234567890")).status, 200)
  })
})

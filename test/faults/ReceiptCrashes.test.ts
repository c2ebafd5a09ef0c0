/**
 * Kills a service during confirmations. Afterwards every receipt of a 200 response must exist, be complete, be charged once, and have
 * a proof. `RECEIPT_KILLS` is the number of kills, two by default.
 */
import { Config, Duration, Effect, Fiber, Option, Queue, Random, Result, Schema } from "effect"
import { Receipt } from "#domain/receipts/Receipt.ts"
import { parse as parseProof, verify as verifyProof } from "#events/log/merkle/Proof.ts"
import { pureCrypto } from "#infra/security/NodeCrypto.ts"
import { checkpointOf, signing, temporaryFolder } from "#test/support/Auditing.ts"
import { confirm, newPaidKey, receiptIdOf } from "#test/support/PaidKey.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import { log } from "#test/support/log/Keys.ts"
import * as Rows from "#test/support/Rows.ts"

const killsOrTwo = Config.Int("RECEIPT_KILLS").pipe(Config.withDefault(2))

/** Concurrent callers. */
const callers = 12
/** Maximum number of responses before a kill. */
const answersMax = 150

const decodeReceipt = Schema.decodeUnknownEffect(Receipt)

interface Answered {
  readonly id: string
  readonly target: string
}

/** Requests confirmations until the service is killed, and puts each received receipt into the queue `answered`. */
const confirmOn = Effect.fnUntraced(function* (
  client: ServiceClient,
  key: string,
  caller: number,
  answered: Queue.Queue<Answered>
) {
  for (let index = 0; ; index += 1) {
    const target = `DE${100_500_000 + caller * 1_000 + (index % 400)}`
    const reply = yield* confirm(client, target, key)
    assert.strictEqual(reply.status, 200, reply.text)
    yield* Queue.offer(answered, { id: yield* receiptIdOf(reply), target })
  }
})

const Totals = Schema.Struct({
  events: Schema.BigInt,
  next_position: Schema.BigInt,
  receipts: Schema.BigInt,
  units: Schema.BigInt,
  used: Schema.BigInt,
  listed: Schema.BigInt
})

const totals = Effect.gen(function* () {
  return yield* Rows.one(
    Totals.fields,
    (
      sql
    ) => sql`SELECT (SELECT count(*) FROM vatproof.events) AS events, (SELECT next_position FROM vatproof.logs) AS next_position,
      (SELECT count(*) FROM vatproof.events WHERE type = 'ReceiptIssued') AS receipts,
      (SELECT coalesce(sum(units), 0)::bigint FROM vatproof.events) AS units, (SELECT coalesce(sum(used), 0)::bigint FROM vatproof.meters) AS used,
      (SELECT count(*) FROM vatproof.listed) AS listed`
  )
})

layer(RunningService.layerGround, { excludeTestServices: true })("a service that is killed during confirmations", (it) => {
  it.effect(
    "still has every issued receipt after a restart",
    function* () {
      const kills = yield* killsOrTwo
      const settings = signing(yield* temporaryFolder)
      const answered = yield* Queue.unbounded<Answered>()
      const received: Array<Answered> = []
      let key = ""
      for (let kill = 0; kill < kills; kill += 1) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const service = yield* RunningService.spawn(settings)
            if (key === "") key = yield* newPaidKey(service)
            const calls = yield* Effect.forEach(
              Array.from({ length: callers }, (_, caller) => caller),
              (caller) => Effect.forkChild(Effect.exit(confirmOn(service, key, caller, answered)))
            )
            const enough = yield* Random.nextIntBetween(1, answersMax).pipe(Random.withSeed(`kill ${kill}`))
            received.push(...(yield* Queue.takeN(answered, enough)))
            yield* service.signal("SIGKILL")
            yield* service.ended
            yield* Effect.forEach(calls, Fiber.join)
            received.push(...(yield* Queue.takeBetween(answered, 0, Number.MAX_SAFE_INTEGER)))
          })
        )
      }
      assert.isAtLeast(received.length, kills)
      assert.strictEqual(new Set(received.map(({ id }) => id)).size, received.length)

      const service = yield* RunningService.start(settings)
      yield* Effect.forEach(
        received,
        Effect.fnUntraced(function* ({ id, target }) {
          const reply = yield* service.ask(`/v1/qualified-confirmations/${id}`, { key })
          assert.strictEqual(reply.status, 200, `${id}: ${reply.text}`)
          const receipt = yield* decodeReceipt(reply.body)
          assert.deepStrictEqual([receipt.receipt_id, receipt.target_vat_id], [id, target])
        }),
        { concurrency: 8, discard: true }
      )
      const { events, listed, next_position, receipts, units, used } = yield* totals
      // Each kill loses at most one response per caller. Charges equal the stored receipts. Each receipt is in two lists.
      assert.isAtMost(Number(receipts), received.length + kills * callers)
      assert.deepStrictEqual([events, units, used, listed], [next_position, receipts, receipts, receipts * 2n])

      yield* checkpointOf(service, Number(next_position))
      const sample = received.filter((_, index) => index % Math.ceil(received.length / 50) === 0)
      for (const { id } of sample) {
        const { status, text } = yield* service.ask(`/v1/audit/proofs/${id}`, { key })
        assert.strictEqual(status, 200, text)
        const { extra } = Result.getOrThrow(parseProof(text))
        const leaf = Option.getOrThrow(extra)
        assert.isTrue(Result.isSuccess(verifyProof(pureCrypto, text, { leaf, ...log })), id)
        assert.include(new TextDecoder().decode(leaf), `"receipt-${id}"`)
      }
    },
    // A timeout that is long enough for hundreds of kills.
    Duration.toMillis("1 hour")
  )
})

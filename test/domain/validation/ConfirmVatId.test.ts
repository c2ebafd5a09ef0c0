import { Effect, Layer, Option, Redacted, Result } from "effect"
import { Identity } from "#domain/callers/Identity.ts"
import { Metering, PreconditionFailed } from "#domain/callers/Metering.ts"
import { ConfirmationSource } from "#domain/receipts/ConfirmationSource.ts"
import { ConfirmVatId } from "#domain/validation/ConfirmVatId.ts"
import { AnswerCache } from "#domain/vat/AnswerCache.ts"
import { parse } from "#domain/vat/VatId.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { callerAt } from "#test/support/CallerAt.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, it } from "#test/support/Test.ts"

const caller = callerAt(0)
const standing = { usage: { used: 1, limit: 10 }, window: null }

it.effect("a receipt has no name that is erased between the read of the name and the append of the receipt", function* () {
  let asOf = 7
  let asked = 0
  const nameAt = () => (asOf === 7 ? "Muster AG" : null)
  const answer = () => ({ ...sourceAnswer, company_name: nameAt(), company_address: null })
  const outside = Layer.mergeAll(
    NodeCrypto.layer,
    Layer.mock(Identity, { byAddress: () => assert.fail("the caller has a key") }),
    Layer.mock(AnswerCache, { refresh: () => Effect.sync(() => Option.some({ position: 7, asOf, answer: answer() })) }),
    Layer.mock(ConfirmationSource, {
      confirm: () =>
        Effect.sync(() => {
          asked += 1
          const letters = { name: "A", street: null, zip: null, city: "A" } as const
          return { answer: sourceAnswer, attempts: [], letters, requestId: null }
        })
    }),
    Layer.mock(Metering, {
      record: ({ repeats }) => {
        const isFirst = asOf === 7
        asOf = 9
        return repeats !== undefined && isFirst
          ? Effect.fail(new PreconditionFailed({ outdated: "answer" }))
          : Effect.succeed({ position: 10, standing })
      }
    })
  )
  const { confirm } = yield* Effect.provide(
    ConfirmVatId.use(Effect.succeed),
    ConfirmVatId.layer({ prefix: "VP", source: "vatproof-issued" }).pipe(Layer.provide(outside))
  )
  const { receipt } = yield* confirm({
    caller,
    credential: { _tag: "Key", key: Redacted.make("key") },
    vatId: Result.getOrThrow(parse("ATU12345678")),
    requester: Result.getOrThrow(parse("DE123456789")),
    company: { name: "Muster AG", street: null, zip: null, city: "Wien" },
    reference: null,
    admitted: standing,
    identity: undefined
  })
  assert.strictEqual(receipt.result.official_name, "")
  assert.strictEqual(asked, 1)
})

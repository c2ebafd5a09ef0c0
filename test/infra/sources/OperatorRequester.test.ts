import { Effect, Fiber, Logger, Metric, Result } from "effect"
import { TestClock } from "effect/testing"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import { SourceFailure } from "#domain/vat/Verdict.ts"
import * as OperatorRequester from "#infra/sources/OperatorRequester.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const operator = Result.getOrThrow(parse("FR40303265045"))
const outage = new SourceFailure({ source: "vies", reason: "unavailable", code: null, scope: "source", retry: "later" })

/** Creates a requester at a register that takes 100 ms. `calls` has the requester of each look-up in the order of their calls. */
const make = Effect.fnUntraced(function* (decide: () => "accepts" | "rejects" | "fails") {
  const { lend, note } = yield* OperatorRequester.make(operator)
  const calls: Array<string | null> = []
  const ask = Effect.fnUntraced(function* (requester: VatId | null) {
    calls.push(requester?.value ?? null)
    yield* Effect.delay(Effect.void, "100 millis")
    const decision = decide()
    if (decision === "fails") return yield* outage
    if (requester !== null) yield* note(requester, decision === "rejects")
  })
  const lookUps = Effect.fnUntraced(function* (count: number) {
    const fiber = yield* Effect.forkChild(
      Effect.forEach(Array.from({ length: count }), () => Effect.ignore(lend(ask)), { concurrency: "unbounded" })
    )
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(fiber)
  })
  const sent = () => calls.filter((requester) => requester !== null).length
  return { calls, lookUps, sent }
})

const gauge = Effect.map(Metric.value(SourceMetrics.requesterRejected()), ({ value }) => value)

describe("the operator's requester", () => {
  it.effect("is sent with every look-up once VIES has accepted it", function* () {
    const { calls, lookUps, sent } = yield* make(() => "accepts")
    yield* lookUps(1)
    yield* lookUps(100)
    assert.deepStrictEqual([calls.length, sent()], [101, 101])
  })

  it.effect("is not sent for an hour after three rejections in a row, and costs one further call an hour", function* () {
    const lines: Array<string> = []
    const { calls, lookUps, sent } = yield* make(() => "rejects")
    const keep = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
    const rejected = Effect.provide(lookUps(500), Logger.layer([keep]))
    yield* rejected
    assert.deepStrictEqual([calls.length, sent()], [500, 3])
    assert.strictEqual(yield* gauge, 1)
    yield* TestClock.adjust("58 minutes")
    yield* lookUps(500)
    assert.strictEqual(sent(), 3)
    yield* TestClock.adjust("1 hour")
    yield* rejected
    assert.strictEqual(sent(), 4)
    assert.lengthOf(lines, 1)
    assert.match(lines[0] ?? "", /^Error VIES rejected REQUESTER_VAT_ID 3 times in a row/u)
  })

  it.effect("is sent by one look-up at a time while VIES gives no verdict, and the others wait at most 2 seconds", function* () {
    const { calls, lookUps, sent } = yield* make(() => "fails")
    yield* lookUps(100)
    assert.strictEqual(calls.length, 100)
    assert.isAtMost(sent(), 21)
  })

  it.effect("is sent again once VIES accepts it", function* () {
    let decision: "accepts" | "rejects" = "rejects"
    const { lookUps, sent } = yield* make(() => decision)
    yield* lookUps(10)
    decision = "accepts"
    yield* TestClock.adjust("1 hour")
    yield* lookUps(1)
    yield* lookUps(20)
    assert.deepStrictEqual([sent(), yield* gauge], [24, 0])
  })
})

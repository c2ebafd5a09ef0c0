import { Context, Duration, Effect, Fiber, Layer, MutableRef, Result } from "effect"
import { TestClock } from "effect/testing"
import { SourceLog, Sources } from "#domain/vat/Sources.ts"
import { parse } from "#domain/vat/VatId.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { type Answer, SourceFailure } from "#domain/vat/Verdict.ts"
import { ResilientSources } from "#infra/sources/ResilientSources.ts"
import * as ResilientSource from "#infra/sources/ResilientSource.ts"
import * as SourceFailover from "#infra/sources/SourceFailover.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const german = Result.getOrThrow(parse("DE123456789"))

const throttled = new SourceFailure({
  source: "vies",
  reason: "throttled",
  code: "MS_MAX_CONCURRENT_REQ",
  scope: "member_state",
  retry: "soon"
})

/** VIES, whose answers the test controls, and the BZSt, which no requester may ask. `counts` has the number of questions to VIES. */
const make = Effect.gen(function* () {
  const conduct = MutableRef.make<Effect.Effect<Answer, SourceFailure>>(Effect.fail(throttled))
  const counts = { asked: 0 }
  const guard = { probe: Effect.void, concurrentPerMemberState: 10, timeout: () => Duration.seconds(8) }
  const guarded = Layer.effect(
    ResilientSources,
    Effect.all({
      vies: ResilientSource.make({
        ...guard,
        source: "vies",
        ask: () => Effect.suspend(() => ((counts.asked += 1), conduct.current))
      }),
      bzst: ResilientSource.make({ ...guard, source: "bzst", ask: () => Effect.die("unused") })
    })
  )
  const layer = SourceFailover.layer({ requester: null, replica: "a" }).pipe(
    Layer.provide([guarded, Layer.succeed(SourceLog, { record: () => Effect.void })])
  )
  const sources = Context.get(yield* Layer.build(layer), Sources)
  const lookUp = Effect.fnUntraced(function* (isBackground: boolean) {
    const question = { vatId: german, requester: null, mayFallBack: true, isBackground }
    const fiber = yield* Effect.forkChild(Effect.exit(sources.lookUp(question)))
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })
  const answeredMs = Effect.map(
    sources.status,
    ({ memberStates }) => memberStates.find(({ prefix }) => prefix === "DE")?.answeredMs
  )
  return { answeredMs, conduct, counts, lookUp }
})

describe("a look-up of a German VAT ID", () => {
  it.effect.each([
    ["three times for a client", false, 3],
    ["once for a task, which is tried again later", true, 1]
  ] as const)("asks a register that rejects concurrent calls %s", function* ([_, isBackground, calls]) {
    const { counts, lookUp } = yield* make
    yield* lookUp(isBackground)
    assert.strictEqual(counts.asked, calls)
  })

  it.effect("records the time of the register's newest answer", function* () {
    const { answeredMs, conduct, lookUp } = yield* make
    yield* lookUp(false)
    assert.isNull(yield* answeredMs)
    MutableRef.set(conduct, Effect.succeed(sourceAnswer))
    yield* TestClock.adjust("10 seconds")
    const from = yield* monotonicMs
    yield* lookUp(false)
    assert.strictEqual(yield* answeredMs, from)
  })
})

import { Context, Duration, Effect, Fiber, Layer, MutableRef, Random, Result } from "effect"
import { TestClock } from "effect/testing"
import { SourceLog, Sources } from "#domain/vat/Sources.ts"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { parse } from "#domain/vat/VatId.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { type Answer, SourceFailure } from "#domain/vat/Verdict.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
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
    const question = { vatId: german, requester: null, hasKey: true, mayFallBack: true, isBackground }
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

describe("10,000 random look-ups with requesters of other member states than Germany", () => {
  it.effect.each([
    ["never ask the BZSt", null],
    ["never send the BZSt another requester than the operator's German one", "DE811115368"]
  ] as const)("%s", function* ([_, operator]) {
    const sent = new Set<string | undefined>()
    let asksOfBzst = 0
    const guard = { probe: Effect.void, concurrentPerMemberState: 10, timeout: () => Duration.seconds(8) }
    const rejected = { ...throttled, reason: "input_rejected", scope: "question", retry: "never" } as const
    const answer = Effect.flatMap(Random.nextBoolean, (answers) =>
      answers ? Effect.succeed(sourceAnswer) : Effect.fail(new SourceFailure(rejected))
    )
    const guarded = Layer.effect(
      ResilientSources,
      Effect.all({
        vies: ResilientSource.make({ ...guard, source: "vies", ask: () => answer }),
        bzst: ResilientSource.make({
          ...guard,
          source: "bzst",
          ask: ({ requester }) => {
            asksOfBzst += 1
            sent.add(requester?.value)
            return Effect.fail(new SourceFailure({ ...rejected, source: "bzst" }))
          }
        })
      })
    )
    const requester = operator === null ? null : Result.getOrThrow(parse(operator))
    const layer = SourceFailover.layer({ requester, replica: "a" }).pipe(
      Layer.provide([guarded, Layer.succeed(SourceLog, { record: () => Effect.void })])
    )
    const { lookUp } = Context.get(yield* Layer.build(layer), Sources)
    const prefixes = [...memberStates.keys()]
    const vatIds = prefixes.map((prefix) => Result.getOrThrow(parse(vatIdEnding(prefix, "123456"))))
    const foreign = vatIds.filter(({ value }) => !value.startsWith("DE"))
    for (let asked = 0; asked < 10_000; asked += 1) {
      const vatId = yield* Random.choice(asked % 2 === 0 ? vatIds : [german])
      const isBackground = yield* Random.nextBoolean
      yield* Effect.exit(
        lookUp({ vatId, requester: yield* Random.choice(foreign), hasKey: true, mayFallBack: true, isBackground })
      )
    }
    assert.deepStrictEqual([...sent], operator === null ? [] : [operator])
    assert.strictEqual(asksOfBzst > 0, operator !== null)
  })
})

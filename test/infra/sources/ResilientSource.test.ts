import { Effect, Fiber, MutableRef, Result } from "effect"
import { TestClock } from "effect/testing"
import { parse } from "#domain/vat/VatId.ts"
import { type Answer, SourceFailure } from "#domain/vat/Verdict.ts"
import * as ResilientSource from "#infra/sources/ResilientSource.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, describe, it } from "#test/support/Test.ts"
import * as WallClock from "#test/support/WallClock.ts"

const vatIdOf = (text: string) => Result.getOrThrow(parse(text))
const french = vatIdOf("FR40100999703")
const austrian = vatIdOf("ATU12345678")
const german = vatIdOf("DE123456789")

const failureOf = (parts: Partial<SourceFailure>) =>
  new SourceFailure({ source: "vies", reason: "throttled", code: "HTTP 429", scope: "source", retry: "later", ...parts })

/** A source whose answers and status page the test controls. `counts` has the number of its calls and probes. */
const make = Effect.gen(function* () {
  const conduct = MutableRef.make<Effect.Effect<Answer, SourceFailure>>(Effect.succeed(sourceAnswer))
  const page = MutableRef.make<Effect.Effect<void, SourceFailure>>(Effect.void)
  const counts = { asked: 0, probed: 0 }
  const guarded = yield* ResilientSource.make({
    source: "vies",
    ask: () => Effect.suspend(() => ((counts.asked += 1), conduct.current)),
    probe: Effect.suspend(() => ((counts.probed += 1), page.current)),
    concurrentPerMemberState: 10,
    timeout: () => "20 seconds"
  })
  const ask = (vatId = austrian) => Effect.result(guarded.ask({ vatId, requester: null, isShared: true }))
  /** Asks the source, and disconnects after `seconds`. */
  const askFor = Effect.fnUntraced(function* (seconds: number, vatId = austrian) {
    const fiber = yield* Effect.forkChild(ask(vatId))
    yield* TestClock.adjust(`${seconds} seconds`)
    yield* Fiber.interrupt(fiber)
  })
  const probe = Effect.fnUntraced(function* () {
    const fiber = yield* Effect.forkChild(guarded.probe)
    yield* TestClock.adjust("30 seconds")
    yield* Fiber.join(fiber)
  })
  return { ask, askFor, conduct, counts, guarded, page, probe }
})

const reasonOf = (result: Result.Result<Answer, SourceFailure>) => (Result.isSuccess(result) ? "answered" : result.failure.reason)

describe("a source behind a circuit breaker", () => {
  it.effect("still answers for other member states after repeated timeouts of one member state's register", function* () {
    const { ask, conduct, guarded } = yield* make
    MutableRef.set(conduct, Effect.never)
    for (const _ of [1, 2, 3]) {
      const fiber = yield* Effect.forkChild(ask(french))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(reasonOf(yield* Fiber.join(fiber)), "timeout")
    }
    MutableRef.set(conduct, Effect.succeed(sourceAnswer))
    assert.strictEqual(reasonOf(yield* ask(french)), "circuit_open")
    assert.strictEqual(reasonOf(yield* ask(austrian)), "answered")
    assert.strictEqual((yield* guarded.status).state, "degraded")
  })

  it.effect("is queried even if its status page does not respond", function* () {
    const { ask, guarded, page, probe } = yield* make
    MutableRef.set(page, Effect.never)
    for (const _ of [1, 2, 3]) yield* probe()
    assert.strictEqual(reasonOf(yield* ask()), "answered")
    assert.strictEqual((yield* guarded.status).state, "degraded")
  })

  it.effect("stays unavailable while neither its calls nor its status page get a response", function* () {
    const { ask, conduct, guarded, page, probe } = yield* make
    MutableRef.set(conduct, Effect.never)
    MutableRef.set(page, Effect.never)
    const fiber = yield* Effect.forkChild(ask(french))
    yield* TestClock.adjust("20 seconds")
    yield* Fiber.join(fiber)
    for (const _ of [1, 2]) yield* probe()
    assert.strictEqual((yield* guarded.status).state, "unavailable")
    // The trial call of the half-open circuit hangs, too.
    yield* TestClock.adjust("20 seconds")
    const again = yield* Effect.forkChild(ask())
    yield* TestClock.adjust("20 seconds")
    assert.strictEqual(reasonOf(yield* Fiber.join(again)), "timeout")
    assert.strictEqual((yield* guarded.status).state, "unavailable")
  })

  it.effect("opens its circuit if all callers disconnect shortly before the timeout of the call", function* () {
    const { ask, askFor, conduct } = yield* make
    MutableRef.set(conduct, Effect.never)
    for (const _ of [1, 2, 3]) yield* askFor(12)
    assert.strictEqual(reasonOf(yield* ask()), "circuit_open")
  })

  it.effect("keeps its circuit closed when callers disconnect early", function* () {
    const { ask, askFor, conduct } = yield* make
    MutableRef.set(conduct, Effect.never)
    for (const _ of [1, 2, 3, 4]) yield* askFor(9)
    MutableRef.set(conduct, Effect.succeed(sourceAnswer))
    assert.strictEqual(reasonOf(yield* ask()), "answered")
  })

  it.effect.each([
    ["that blocks the service's address", { reason: "blocked", code: "IP_BLOCKED" }, 600],
    ["that asks for a pause", { retry_after_s: 300 }, 300],
    ["that asks for a pause of a day", { retry_after_s: 86_400 }, 600]
  ] as const)(
    "%s is neither queried nor probed during its pause, and reports when the pause ends",
    function* ([_, parts, seconds]) {
      const { ask, conduct, counts, guarded, probe } = yield* make
      MutableRef.set(conduct, Effect.fail(failureOf(parts)))
      yield* ask()
      MutableRef.set(conduct, Effect.succeed(sourceAnswer))
      assert.strictEqual(yield* guarded.opensInSeconds, seconds)
      yield* probe()
      assert.strictEqual(reasonOf(yield* ask()), "circuit_open")
      assert.deepStrictEqual(counts, { asked: 1, probed: 0 })
      yield* TestClock.adjust(`${seconds - 30} seconds`)
      assert.strictEqual(reasonOf(yield* ask()), "answered")
    }
  )

  it.effect.each([
    ["source", "circuit of the source"],
    ["member_state", "circuit of a register"]
  ] as const)(
    "(a %s) that repeats its request for a pause is called again after ten minutes, like any failing one",
    function* ([scope]) {
      const { ask, conduct, counts } = yield* make
      MutableRef.set(conduct, Effect.fail(failureOf({ scope, retry_after_s: 240 })))
      // The first three failures open the circuit of a register.
      for (const _ of [1, 2, 3]) yield* ask()
      yield* TestClock.adjust("599 seconds")
      yield* ask()
      const before = counts.asked
      for (const _ of Array.from({ length: 12 })) {
        yield* TestClock.adjust("10 seconds")
        yield* ask()
      }
      assert.isAtLeast(counts.asked - before, 11)
      // A successful call ends the incident: the source may request a pause again.
      MutableRef.set(conduct, Effect.succeed(sourceAnswer))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(reasonOf(yield* ask()), "answered")
      MutableRef.set(conduct, Effect.fail(failureOf({ scope, retry_after_s: 240 })))
      for (const _ of [1, 2, 3]) yield* ask()
      const again = counts.asked
      yield* TestClock.adjust("239 seconds")
      assert.strictEqual(reasonOf(yield* ask()), "circuit_open")
      assert.strictEqual(counts.asked, again)
    }
  )

  it.effect.each([
    ["is called once for equal queries of several callers", true, 1],
    ["is called once per caller if each answer belongs to its caller", false, 3]
  ] as const)("%s", function* ([_, isShared, calls]) {
    const { conduct, counts, guarded } = yield* make
    MutableRef.set(conduct, Effect.delay(Effect.succeed(sourceAnswer), "1 seconds"))
    const question = { vatId: austrian, requester: german, isShared }
    const fibers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(guarded.ask(question)))
    yield* TestClock.adjust("1 seconds")
    yield* Effect.forEach(fibers, Fiber.join)
    assert.strictEqual(counts.asked, calls)
  })

  it.effect("ends a shared call when its last caller disconnects", function* () {
    const { conduct, counts, guarded } = yield* make
    const ended = MutableRef.make(0)
    const call = Effect.onInterrupt(Effect.never, () => Effect.sync(() => MutableRef.increment(ended)))
    MutableRef.set(conduct, call)
    const question = { vatId: austrian, requester: null, isShared: true }
    const first = yield* Effect.forkChild(guarded.ask(question), { startImmediately: true })
    const second = yield* Effect.forkChild(guarded.ask(question), { startImmediately: true })
    yield* Fiber.interrupt(first)
    assert.deepStrictEqual([counts.asked, ended.current], [1, 0])
    yield* Fiber.interrupt(second)
    assert.deepStrictEqual([counts.asked, ended.current], [1, 1])
  })
})

describe("a source of a replica whose clock is set back by an hour", () => {
  it.effect("is queried when its pause ends", function* () {
    const wallClock = yield* WallClock.make
    const { ask, conduct, guarded } = yield* wallClock.on(make)
    MutableRef.set(conduct, Effect.fail(failureOf({ retry_after_s: 300 })))
    yield* wallClock.on(ask())
    MutableRef.set(conduct, Effect.succeed(sourceAnswer))
    wallClock.setBack("1 hour")
    assert.strictEqual(yield* wallClock.on(guarded.opensInSeconds), 300)
    yield* TestClock.adjust("300 seconds")
    assert.strictEqual(reasonOf(yield* wallClock.on(ask())), "answered")
  })

  it.effect("is probed 20 s after a failed call while its circuit is open", function* () {
    const wallClock = yield* WallClock.make
    const { ask, conduct, counts, guarded } = yield* wallClock.on(make)
    MutableRef.set(conduct, Effect.fail(failureOf({ reason: "unreachable", code: "ECONNREFUSED" })))
    for (const _ of [1, 2]) yield* wallClock.on(ask())
    wallClock.setBack("1 hour")
    yield* TestClock.adjust("20 seconds")
    yield* wallClock.on(guarded.probe)
    assert.strictEqual(counts.probed, 1)
  })

  it.effect("is operational a minute after its last failure", function* () {
    const wallClock = yield* WallClock.make
    const { ask, conduct, guarded } = yield* wallClock.on(make)
    MutableRef.set(conduct, Effect.fail(failureOf({ scope: "member_state", reason: "unavailable", code: "MS_UNAVAILABLE" })))
    yield* wallClock.on(ask())
    wallClock.setBack("1 hour")
    assert.strictEqual((yield* wallClock.on(guarded.status)).state, "degraded")
    yield* TestClock.adjust("1 minute")
    assert.containSubset(yield* wallClock.on(guarded.status), { state: "operational", reason: null })
  })
})

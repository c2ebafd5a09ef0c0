import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { SourceFailure } from "#domain/vat/Verdict.ts"
import * as SourceBreaker from "#infra/sources/SourceBreaker.ts"
import { assert, it } from "#test/support/Test.ts"
import * as WallClock from "#test/support/WallClock.ts"

const failureOf = (parts: Pick<SourceFailure, "reason" | "code"> & Partial<Pick<SourceFailure, "retry_after_s">>) =>
  new SourceFailure({ source: "vies", scope: "source", retry: "later", ...parts })

const twice = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.repeat(Effect.exit(effect), { times: 1 })

it.effect.each([
  ["that reports that it is unavailable", { reason: "unavailable", code: null }, false, true],
  ["that is unreachable", { reason: "unreachable", code: "ECONNREFUSED" }, false, true],
  ["that times out on connect", { reason: "timeout", code: "UND_ERR_CONNECT_TIMEOUT" }, false, true],
  ["that answers neither calls nor probes", { reason: "timeout", code: null }, true, true],
  ["whose status page does not respond", { reason: "timeout", code: null }, false, false],
  ["whose status page is missing", { reason: "malformed", code: "HTTP 404" }, true, false],
  ["whose status page is broken", { reason: "unavailable", code: "HTTP 500" }, true, false],
  ["that throttles requests", { reason: "throttled", code: "HTTP 429" }, true, false]
] as const)(
  "failed probes of a source %s open its circuit only if the whole source is affected",
  function* ([_, parts, isFailing, opens]) {
    const breaker = yield* SourceBreaker.make("vies")
    yield* twice(breaker.probe(Effect.fail(failureOf(parts)), isFailing))
    assert.strictEqual(yield* breaker.isSourceOpen, opens)
    const asked = yield* Effect.result(breaker.source(Effect.succeed("answer")))
    assert.strictEqual(asked._tag, opens ? "Failure" : "Success")
  }
)

it.effect.each([
  ["a pause of unknown length", 5, undefined],
  ["a pause of a minute", 60, 60],
  ["a pause of a day", 600, 86_400]
] as const)("a source that asks for %s is paused for %s s", function* ([_, seconds, retry_after_s]) {
  const breaker = yield* SourceBreaker.make("vies")
  const failure = failureOf({
    reason: "throttled",
    code: "HTTP 429",
    ...(retry_after_s === undefined ? {} : { retry_after_s })
  })
  yield* twice(breaker.source(Effect.fail(failure)))
  assert.strictEqual(yield* breaker.opensInSeconds, seconds)
  yield* TestClock.adjust(`${seconds} seconds`)
  assert.strictEqual(yield* breaker.source(Effect.succeed("answer")), "answer")
})

it.effect.each([
  ["an answer that reports a register's timeout", "TIMEOUT", false],
  ["no answer", null, true]
] as const)(
  "after a trial call with %s, a half-open circuit opens again only if there was no answer",
  function* ([_, code, isOpen]) {
    const breaker = yield* SourceBreaker.make("vies")
    yield* twice(breaker.source(Effect.fail(failureOf({ reason: "unreachable", code: "ECONNREFUSED" }))))
    yield* TestClock.adjust("5 seconds")
    const failure = new SourceFailure({ source: "vies", reason: "timeout", code, scope: "member_state", retry: "later" })
    yield* Effect.flip(breaker.source(Effect.fail(failure)))
    assert.strictEqual(yield* breaker.isSourceOpen, isOpen)
  }
)

it.effect("an open circuit lets a call through after 5 s, even if the clock was set back", function* () {
  const wallClock = yield* WallClock.make
  const breaker = yield* wallClock.on(SourceBreaker.make("vies"))
  const unreachable = failureOf({ reason: "unreachable", code: "ECONNREFUSED" })
  yield* wallClock.on(twice(breaker.source(Effect.fail(unreachable))))
  wallClock.setBack("1 hour")
  assert.strictEqual(yield* wallClock.on(breaker.opensInSeconds), 5)
  yield* TestClock.adjust("5 seconds")
  assert.strictEqual(yield* wallClock.on(breaker.source(Effect.succeed("answer"))), "answer")
})

import { Duration, Effect, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as TaskPacing from "#domain/pending/TaskPacing.ts"
import { SourceLog, Sources } from "#domain/vat/Sources.ts"
import { parse } from "#domain/vat/VatId.ts"
import { SourceFailure } from "#domain/vat/Verdict.ts"
import { ResilientSources } from "#infra/sources/ResilientSources.ts"
import * as ResilientSource from "#infra/sources/ResilientSource.ts"
import * as SourceFailover from "#infra/sources/SourceFailover.ts"
import { assert, describe, fresh } from "#test/support/Test.ts"

const german = Result.getOrThrow(parse("DE123456789"))

const registerDown = new SourceFailure({
  source: "vies",
  reason: "member_state_unavailable",
  code: "MS_UNAVAILABLE",
  scope: "member_state",
  retry: "later"
})

const guard = {
  ask: () => Effect.fail(registerDown),
  probe: Effect.void,
  concurrentPerMemberState: 10,
  timeout: () => Duration.seconds(8)
} as const

/** VIES without a German register, and the BZSt, which no requester may ask. */
const guarded = Layer.effect(
  ResilientSources,
  Effect.all({
    vies: ResilientSource.make({ ...guard, source: "vies" }),
    bzst: ResilientSource.make({ ...guard, source: "bzst" })
  })
)

const sources = SourceFailover.layer({ requester: null, replica: "a" }).pipe(
  Layer.provide([guarded, Layer.succeed(SourceLog, { record: () => Effect.void })])
)

describe("German tasks during an outage of the German register", () => {
  fresh(sources).effect(
    "are tried before they are due only while the next call decides whether the register recovered",
    function* () {
      const { lookUp, status } = yield* Sources
      const pacing = TaskPacing.make()
      /** Returns the free slots of Germany, and the time since the last attempt after which a task is claimed before it is due. */
      const slots = Effect.map(status, ({ memberStates }) => {
        pacing.observe(memberStates, 0)
        return pacing.slots(0).find(({ memberState }) => memberState === "DE")
      })
      for (const _ of [1, 2, 3]) yield* Effect.flip(lookUp({ vatId: german, requester: null, mayFallBack: true }))
      assert.deepStrictEqual(yield* slots, { memberState: "DE", slots: 1, wakeMs: null })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* slots, { memberState: "DE", slots: 1, wakeMs: 5_000 })
    }
  )
})

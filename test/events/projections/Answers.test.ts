import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Layer, Option, Result } from "effect"
import { AnswerCache, latestKey } from "#domain/AnswerCache.ts"
import { parse } from "#domain/VatId.ts"
import type { Answer } from "#domain/Verdict.ts"
import { VatIdVerified } from "#domain/Verification.ts"
import { EventStore } from "#events/EventStore.ts"
import * as Answers from "#events/projections/Answers.ts"
import * as Randomness from "#infra/Randomness.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { sourceAnswer } from "#test/support/SourceAnswer.ts"

const vatIdOf = (text: string) => Result.getOrThrow(parse(text))

const answerOf = (valid: boolean, answeredAt: string): Answer => ({
  ...sourceAnswer,
  valid,
  answered_at: DateTime.makeUnsafe(answeredAt)
})

/** Stores a live answer; gives back its position. */
const store = Effect.fnUntraced(function* (text: string, answer: Answer) {
  const vatId = vatIdOf(text)
  const { append } = yield* EventStore
  const event = VatIdVerified.make({
    vat_id: vatId.value,
    force_live: true,
    requester_vat_id: null,
    valid: answer.valid,
    source: answer.source,
    answered_at: answer.answered_at,
    served: "live",
    answer,
    answer_position: null,
    attempts: []
  })
  const command = { stream: "key-1", expectedVersion: null, events: [event] as const, charge: null, latestOf: latestKey(vatId) }
  return (yield* append(command)).position
})

const newest = Effect.fnUntraced(function* (text: string) {
  return Option.getOrThrow(yield* (yield* AnswerCache).newest(vatIdOf(text)))
})

const testLayer = Answers.layer.pipe(
  Layer.provideMerge(EventStore.layer),
  Layer.provide(Randomness.layer),
  Layer.provideMerge(MigratedDatabase.layer)
)

layer(testLayer, { excludeTestServices: true })("the newest answer about a VAT ID", (it) => {
  it.effect("is the one that its source gave last, also where another one was longer under way", () =>
    Effect.gen(function* () {
      const position = yield* store("ATU12345678", answerOf(false, "2026-11-01T12:00:02.000Z"))
      yield* store("ATU12345678", answerOf(true, "2026-11-01T12:00:01.999Z"))
      assert.containSubset(yield* newest("ATU12345678"), { position, answer: { valid: false } })
    })
  )

  it.effect("is the one that its source gave last, also where both are stored at once", () =>
    Effect.gen(function* () {
      const times = ["02", "05", "01", "04", "03"]
      yield* Effect.forEach(
        times,
        (seconds) => store("ATU12345679", answerOf(seconds === "05", `2026-11-01T12:00:${seconds}.000Z`)),
        { concurrency: "unbounded" }
      )
      assert.containSubset(yield* newest("ATU12345679"), { answer: { valid: true } })
    })
  )

  it.effect("is the one that was stored last of two that were given in the same moment", () =>
    Effect.gen(function* () {
      yield* store("ATU12345680", answerOf(true, "2026-11-01T12:00:01.000Z"))
      const position = yield* store("ATU12345680", answerOf(false, "2026-11-01T12:00:01.000Z"))
      assert.containSubset(yield* newest("ATU12345680"), { position, answer: { valid: false } })
    })
  )

  it.effect("makes room for the next one also if the clock of its source was far ahead", () =>
    Effect.gen(function* () {
      yield* store("ATU12345681", answerOf(true, "2099-01-01T00:00:00.000Z"))
      const later = DateTime.formatIso(DateTime.add(yield* DateTime.now, { minutes: 1 }))
      const position = yield* store("ATU12345681", answerOf(false, later))
      assert.containSubset(yield* newest("ATU12345681"), { position, answer: { valid: false } })
    })
  )

  it.effect("gives way to any other one if it was stored before the times were kept", () =>
    Effect.gen(function* () {
      yield* store("ATU12345682", answerOf(true, "2026-11-01T12:00:01.000Z"))
      yield* MigratedDatabase.execute("UPDATE vatproof.latest SET answered_at = NULL WHERE key = 'answer-ATU12345682'")
      const position = yield* store("ATU12345682", answerOf(false, "2026-10-01T12:00:00.000Z"))
      assert.containSubset(yield* newest("ATU12345682"), { position, answer: { valid: false } })
    })
  )
})

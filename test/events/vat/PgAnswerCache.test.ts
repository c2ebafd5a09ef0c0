import { DateTime, Effect, Exit, Layer, Option, Result } from "effect"
import { AnswerCache } from "#domain/vat/AnswerCache.ts"
import { Integrity } from "#domain/log/Integrity.ts"
import { parse } from "#domain/vat/VatId.ts"
import type { Answer } from "#domain/vat/Verdict.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as PgAnswerCache from "#events/vat/PgAnswerCache.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { answered, sourceAnswer } from "#test/support/SourceAnswer.ts"
import { assert, layer } from "#test/support/Test.ts"

const vatIdOf = (text: string) => Result.getOrThrow(parse(text))

const answerOf = (valid: boolean, answeredAt: string): Answer => ({
  ...sourceAnswer,
  valid,
  answered_at: DateTime.makeUnsafe(answeredAt)
})

/** Stores a live answer and returns its position. */
const store = Effect.fnUntraced(function* (text: string, answer: Answer) {
  const vatId = vatIdOf(text)
  const { append } = yield* EventStore
  const event = answered(vatId.value, answer)
  return (yield* append({ stream: "key-1", expectedVersion: null, events: [event], charge: null })).position
})

const newest = Effect.fnUntraced(function* (text: string) {
  return Option.getOrThrow(yield* (yield* AnswerCache).newest(vatIdOf(text)))
})

const testLayer = PgAnswerCache.layer.pipe(
  Layer.provideMerge(EventStore.layer),
  Layer.provide([NodeCrypto.layer, Integrity.layer]),
  Layer.provideMerge(MigratedDatabase.layer)
)

layer(testLayer, { excludeTestServices: true })("the answer cache in Postgres", (it) => {
  it.effect(
    "returns the answer with the latest time that a source stated, even if an older answer is stored later",
    function* () {
      const position = yield* store("ATU12345678", answerOf(false, "2026-11-01T12:00:02.000Z"))
      yield* store("ATU12345678", answerOf(true, "2026-11-01T12:00:01.999Z"))
      assert.containSubset(yield* newest("ATU12345678"), { position, answer: { valid: false } })
    }
  )

  it.effect(
    "returns the answer with the latest time that a source stated, even if several answers are stored concurrently",
    function* () {
      const times = ["02", "05", "01", "04", "03"]
      yield* Effect.forEach(
        times,
        (seconds) => store("ATU12345679", answerOf(seconds === "05", `2026-11-01T12:00:${seconds}.000Z`)),
        { concurrency: "unbounded" }
      )
      assert.containSubset(yield* newest("ATU12345679"), { answer: { valid: true } })
    }
  )

  it.effect("returns the answer that was stored last if two answers have the same time", function* () {
    yield* store("ATU12345680", answerOf(true, "2026-11-01T12:00:01.000Z"))
    const position = yield* store("ATU12345680", answerOf(false, "2026-11-01T12:00:01.000Z"))
    assert.containSubset(yield* newest("ATU12345680"), { position, answer: { valid: false } })
  })

  it.effect("does not return an answer whose row a superuser changed", function* () {
    yield* store("ATU12345683", answerOf(true, "2026-11-01T12:00:01.000Z"))
    const change = (columns: string) =>
      MigratedDatabase.execute(`UPDATE vatproof.latest SET ${columns} WHERE key = 'answer-ATU12345683'`)
    const changes = [
      ["answer = replace(answer, 'true', 'false')", "answer = replace(answer, 'false', 'true')"],
      ["answered_at = answered_at + interval '1 day'", "answered_at = answered_at - interval '1 day'"],
      ["as_of = as_of + 1", "as_of = as_of - 1"]
    ] as const
    for (const [made, undone] of changes) {
      yield* change(made)
      assert.isTrue(Exit.hasDies(yield* Effect.exit(newest("ATU12345683"))), made)
      yield* change(undone)
    }
    assert.containSubset(yield* newest("ATU12345683"), { answer: { valid: true } })
  })

  it.effect("returns a new answer even if the previous answer's time is far in the future", function* () {
    yield* store("ATU12345681", answerOf(true, "2099-01-01T00:00:00.000Z"))
    const later = DateTime.formatIso(DateTime.add(yield* DateTime.now, { minutes: 1 }))
    const position = yield* store("ATU12345681", answerOf(false, later))
    assert.containSubset(yield* newest("ATU12345681"), { position, answer: { valid: false } })
  })

  it.effect(
    "returns those fields of an answer that the API's responses show, and the position of the answer's event",
    function* () {
      const { refresh } = yield* AnswerCache
      const answer = {
        ...answerOf(true, "2026-11-01T12:00:01.000Z"),
        company_name: 'Ä & \\u0000 "Söhne"',
        company_address: "1\n2"
      }
      const position = yield* store("ATU12345682", answer)
      const { answered_at, company_address, company_name, source, valid } = answer
      const expected = { position, asOf: position, answer: { source, valid, answered_at, company_name, company_address } }
      assert.deepStrictEqual(yield* newest("ATU12345682"), expected)
      assert.deepStrictEqual(Option.getOrThrow(yield* refresh(vatIdOf("ATU12345682"))), expected)
    }
  )

  it.effect("returns the day on which the VAT ID becomes valid, if the source names one", function* () {
    const answer: Answer = { ...answerOf(false, "2026-11-01T12:00:01.000Z"), source: "bzst", valid_from: "2026-11-25" }
    yield* store("DE100440190", answer)
    assert.containSubset(yield* newest("DE100440190"), { answer: { valid: false, valid_from: "2026-11-25" } })
  })

  it.effect("does not return an answer that a superuser copied from another VAT ID", function* () {
    yield* store("ATU12345685", answerOf(true, "2026-11-01T12:00:01.000Z"))
    const position = yield* store("PL1234567890", answerOf(true, "2026-11-01T12:00:01.000Z"))
    yield* MigratedDatabase.execute(`UPDATE vatproof.latest AS l SET position = o.position, answer = o.answer
        FROM vatproof.latest o WHERE l.key = 'answer-ATU12345685' AND o.key = 'answer-PL1234567890'`)
    const exit = yield* Effect.exit(newest("ATU12345685"))
    assert.include(String(exit), `differs from its event at position ${position}`)
    assert.containSubset(yield* newest("PL1234567890"), { position })
  })

  it.effect("finds the answer of each known VAT ID in concurrent look-ups, and no answer for an unknown VAT ID", function* () {
    const cache = yield* AnswerCache
    const known = ["ATU12345683", "ATU12345684"]
    const positions = yield* Effect.forEach(known, (text) => store(text, answerOf(true, "2026-11-01T12:00:01.000Z")))
    const asked = ["ATU12345684", "ATU12345699", "ATU12345683", "ATU12345684"]
    const found = yield* Effect.forEach(asked, (text) => cache.newest(vatIdOf(text)), { concurrency: "unbounded" })
    assert.deepStrictEqual(
      found.map((stored) => Option.getOrUndefined(stored)?.position),
      [positions[1], undefined, positions[0], positions[1]]
    )
    yield* cache.ping
  })
})

import { assert, describe } from "@effect/vitest"
import { DateTime, Effect, Fiber, Layer, Option, Queue, Result } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { ConfirmationSource } from "#domain/receipts/ConfirmationSource.ts"
import { parse } from "#domain/vat/VatId.ts"
import * as Bzst from "#infra/sources/Bzst.ts"
import * as BzstConfirmations from "#infra/sources/BzstConfirmations.ts"
import { evatrStatuses } from "#infra/sources/EvatrStatus.ts"
import { httpStatusOf } from "#infra/sandbox/StatusMessages.ts"
import * as ResilientSources from "#infra/sources/ResilientSources.ts"
import * as Vies from "#infra/sources/Vies.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import { bzstAnswer, bzstClock, bzstStatus } from "#test/support/RecordedAnswers.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { fresh } from "#test/support/Test.ts"

/** A confirmation source with new circuit breakers, which are closed. */
const parts = Layer.unwrap(
  Effect.map(StandIn.StandIn, ({ baseUrl }) =>
    BzstConfirmations.layer.pipe(
      Layer.provide(ResilientSources.layer),
      Layer.provide([Bzst.layer({ baseUrl }), Vies.layer({ baseUrl })])
    )
  )
).pipe(Layer.provideMerge([StandIn.layer, bzstClock]), Layer.provide(SourceHttp.layerClient))

const question = {
  vatId: Result.getOrThrow(parse("DE811115368")),
  requester: Result.getOrThrow(parse("DE123456789")),
  company: { name: 'Müller & Söhne "ΑΒΓ" \u2028', street: null, zip: "", city: "Köln" }
}

const confirm = Effect.flatMap(ConfirmationSource, (source) => source.confirm(question))

const confirmAgainst = Effect.fnUntraced(function* (...scripts: ReadonlyArray<StandIn.Script>) {
  const standIn = yield* StandIn.StandIn
  yield* standIn.next(...scripts)
  return yield* confirm
})

const noLetters = { name: null, street: null, zip: null, city: null }

/** One status code for each reason of an outage. EvatrStatus.test.ts tests the outcome of every status code. */
const outages = ["evatr-0001", "evatr-0008", "evatr-0011", "evatr-2007"].map((status) => {
  const { meaning, outcome } = Option.getOrThrow(Option.fromNullishOr(evatrStatuses.get(status)))
  return { status, http: httpStatusOf(status), meaning, reason: typeof outcome === "string" ? outcome : outcome.reason }
})

const own = fresh(parts)

describe("a qualified confirmation by the BZSt", () => {
  own.effect("makes one qualified query, and keeps the request and the response byte for byte", function* () {
    // The evidence keeps spaces, unknown fields, escapes and the order of fields.
    const response = `{ "status":"evatr-0000","neu":[1.50,"\\u00fc"],\n"anfrageZeitpunkt":"2025-09-22T18:33:04.564553064+02:00","id":"5b1f4b5f03c27585","ergFirmenname":"A","ergOrt":"B","ergPlz":"C","ergStrasse":"D"}\r\n`
    const confirmed = yield* confirmAgainst(StandIn.answer(200, response, { "content-type": "text/plain" }))
    const call = yield* Queue.take((yield* StandIn.StandIn).calls)
    assert.match(call.head, /^POST \/v1\/abfrage HTTP/u)
    assert.deepStrictEqual(confirmed.answer.evidence, {
      request: call.body,
      response,
      response_sha256: createHash("sha256").update(response).digest("hex"),
      http_status: 200
    })
    assert.deepStrictEqual(JSON.parse(call.body), {
      anfragendeUstid: "DE123456789",
      angefragteUstid: "DE811115368",
      firmenname: question.company.name,
      plz: "",
      ort: "Köln"
    })
    assert.deepStrictEqual(confirmed.letters, { name: "A", street: "D", zip: "C", city: "B" })
    assert.strictEqual(confirmed.requestId, "5b1f4b5f03c27585")
    assert.deepStrictEqual(confirmed.answer.answered_at, DateTime.makeUnsafe("2025-09-22T16:33:04.564Z"))
    assert.containSubset(confirmed.attempts, [{ source: "bzst", outcome: "answered", code: "evatr-0000" }])
  })

  own.effect("fails after a malformed answer, and asks the client to wait while the circuit is open", function* () {
    const unread = yield* Effect.flip(confirmAgainst(StandIn.answer(200, bzstStatus("evatr-2001", { anfrageZeitpunkt: "soon" }))))
    assert.include(unread.message, "(malformed)")
    const busy = yield* Effect.flip(confirmAgainst(StandIn.answer(503, "busy", { "retry-after": "0" })))
    assert.containSubset(busy, { _tag: "SourcesUnavailable", retryAfterSeconds: 5 })
  })

  own.effect.each([
    ["evatr-0000", 200, true],
    ["evatr-2001", 404, false]
  ] as const)("has a verdict with the status %s", function* ([status, http, valid]) {
    const more = { gueltigAb: "2010-01-01", gueltigBis: "31.12.2020" }
    const { answer, letters, requestId } = yield* confirmAgainst(StandIn.answer(http, bzstStatus(status, more)))
    assert.containSubset(answer, {
      source: "bzst",
      valid,
      code: status,
      company_name: null,
      company_address: null,
      valid_from: "2010-01-01",
      valid_until: "2020-12-31"
    })
    assert.strictEqual(answer.evidence.http_status, http)
    assert.deepStrictEqual([letters, requestId], [noLetters, bzstAnswer.id])
  })

  own.effect.each<[string, string, string]>([
    ["evatr-0006", "refused", "not admitted to ask for German VAT IDs"],
    ["evatr-0004", "requester_rejected", "the requester's German VAT ID is malformed"],
    ["evatr-2005", "requester_rejected", "the requester's German VAT ID is not valid"]
  ])(
    "is refused if the BZSt answers %s, with a message that contains the code and its meaning",
    function* ([status, outcome, meaning]) {
      for (const http of [403, 400, 200]) {
        const refusal = yield* Effect.flip(confirmAgainst(StandIn.answer(http, bzstStatus(status))))
        if (refusal._tag !== "ConfirmationRefusal") return assert.fail(refusal._tag)
        assert.strictEqual(refusal.code, status)
        assert.include(refusal.message, `${status}): `)
        assert.include(refusal.message, meaning)
        assert.containSubset(refusal.attempts, [{ outcome, code: status }])
      }
    }
  )

  own.effect.each(outages)(
    "fails like in an outage if the BZSt answers $status, with a message that contains the meaning of the code",
    function* ({ http, meaning, reason, status }) {
      const failure = yield* Effect.flip(confirmAgainst(StandIn.answer(http, bzstStatus(status))))
      if (failure._tag !== "SourcesUnavailable") return assert.fail(failure._tag)
      assert.include(failure.message, `${status}: ${meaning}`)
      assert.include(failure.message, "says nothing about the VAT ID")
      assert.isAbove(failure.retryAfterSeconds, 0)
      assert.containSubset(failure.attempts, [{ outcome: reason, code: status }])
      // The BZSt forbids immediate retries, so one query makes one call.
      const { calls } = yield* StandIn.StandIn
      assert.strictEqual(yield* Queue.size(calls), 1)
    }
  )

  own.effect("fails with the pause that the Retry-After header of the BZSt requests", function* () {
    const script = StandIn.answer(503, bzstStatus("evatr-0011"), { "retry-after": "77" })
    assert.containSubset(yield* Effect.flip(confirmAgainst(script)), { retryAfterSeconds: 77 })
  })

  own.effect("fails after an unpublished status, an outage and a malformed answer", function* () {
    const scripts = [
      StandIn.answer(200, bzstStatus("evatr-9999")),
      StandIn.answer(502, "<html>Bad gateway</html>"),
      StandIn.answer(200, { ...bzstAnswer, ergOrt: "E" })
    ]
    for (const script of scripts) {
      const failure = yield* Effect.flip(confirmAgainst(script))
      assert.strictEqual(failure._tag, "SourcesUnavailable")
    }
  })

  own.effect("times out after 15 seconds", function* () {
    const fiber = yield* Effect.forkChild(Effect.flip(confirmAgainst(StandIn.silence)))
    const call = yield* Queue.take((yield* StandIn.StandIn).calls)
    yield* TestClock.adjust("15 seconds")
    assert.containSubset(yield* Fiber.join(fiber), { attempts: [{ outcome: "timeout", duration_ms: 15_000 }] })
    yield* call.closed
  })

  own.effect("is not sent to the BZSt while the circuit is open after consecutive outages", function* () {
    const { calls, next } = yield* StandIn.StandIn
    const down = StandIn.answer(503, bzstStatus("evatr-0011"))
    let asked = 0
    let failure = yield* Effect.flip(confirmAgainst(down))
    while (failure._tag === "SourcesUnavailable" && failure.attempts[0]?.outcome !== "circuit_open" && asked < 50) {
      asked += 1
      yield* next(down)
      failure = yield* Effect.flip(confirm)
    }
    assert.containSubset(failure, { _tag: "SourcesUnavailable", attempts: [{ outcome: "circuit_open" }] })
    assert.strictEqual(yield* Queue.size(calls), asked)
  })
})

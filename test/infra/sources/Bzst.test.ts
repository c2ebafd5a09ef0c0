import { DateTime, Effect, Fiber, Layer, Queue, Result, Schema, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import * as Bzst from "#infra/sources/Bzst.ts"
import { evatrStatuses } from "#infra/sources/EvatrStatus.ts"
import { httpStatusOf } from "#infra/sandbox/StatusMessages.ts"
import * as SourceTelemetry from "#infra/sources/SourceTelemetry.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import { bzstAnswer, bzstClock, bzstStatus } from "#test/support/RecordedAnswers.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, describe, fresh, layer } from "#test/support/Test.ts"

const parts = Layer.unwrap(Effect.map(StandIn.StandIn, ({ baseUrl }) => Bzst.layer({ baseUrl }))).pipe(
  Layer.provideMerge([StandIn.layer, bzstClock]),
  Layer.provide(SourceHttp.layerClient)
)

const id = (text: string): VatId => Result.getOrThrow(parse(text))
const plain = { vatId: id("ATU12345678"), requester: id("DE123456789"), company: null }
const company = { name: "Musterhaus GmbH & Co KG", street: "Musterstrasse 22", zip: "12345", city: "musterort" }

const askAgainst = Effect.fnUntraced(function* (question: Bzst.Question, script: StandIn.Script) {
  const standIn = yield* StandIn.StandIn
  const bzst = yield* Bzst.Bzst
  yield* standIn.next(script)
  return yield* bzst.ask(question)
})

const own = fresh(parts)

describe("a query to the BZSt", () => {
  own.effect(
    "contains both VAT IDs with prefix and all company data, and its answer contains the exact request and response",
    function* () {
      const answer = yield* askAgainst({ ...plain, company }, StandIn.answer(200, bzstAnswer))
      const request = JSON.stringify({
        anfragendeUstid: "DE123456789",
        angefragteUstid: "ATU12345678",
        firmenname: "Musterhaus GmbH & Co KG",
        strasse: "Musterstrasse 22",
        plz: "12345",
        ort: "musterort"
      })
      const response = JSON.stringify(bzstAnswer)
      assert.deepStrictEqual(answer, {
        source: "bzst",
        valid: true,
        code: "evatr-0000",
        answered_at: DateTime.makeUnsafe("2025-09-22T16:33:04.564Z"),
        company_name: null,
        company_address: null,
        consultation_number: null,
        valid_from: null,
        valid_until: null,
        evidence: {
          request,
          response,
          response_sha256: createHash("sha256").update(response).digest("hex"),
          http_status: 200
        },
        status: "evatr-0000",
        request_id: "5b1f4b5f03c27585",
        name_match: "A",
        street_match: "A",
        zip_match: "A",
        city_match: "A"
      })
      assert.isTrue(Schema.is(Bzst.BzstAnswer)(answer))
      const call = yield* Queue.take((yield* StandIn.StandIn).calls)
      assert.match(call.head, /^POST \/v1\/abfrage HTTP/u)
      assert.strictEqual(call.body, request)
    }
  )

  own.effect("keeps the prefix of a German VAT ID, and omits company data that was not supplied", function* () {
    const question = { ...plain, vatId: id("811115368"), company: { ...company, street: null, zip: null } }
    yield* askAgainst(question, StandIn.answer(200, bzstAnswer))
    const call = yield* Queue.take((yield* StandIn.StandIn).calls)
    assert.deepStrictEqual(JSON.parse(call.body), {
      anfragendeUstid: "DE123456789",
      angefragteUstid: "DE811115368",
      firmenname: "Musterhaus GmbH & Co KG",
      ort: "musterort"
    })
  })

  own.effect("has a connection of its own, so that no late answer to another question arrives on it", function* () {
    const { calls, connections } = yield* StandIn.StandIn
    for (const vatId of ["ATU11111111", "ATU22222222", "ATU33333333"]) {
      yield* askAgainst({ ...plain, vatId: id(vatId) }, StandIn.answer(200, bzstAnswer))
      const call = yield* Queue.take(calls)
      assert.match(call.head, /^connection: close$/imu)
      yield* call.closed
    }
    assert.strictEqual(yield* connections, 3)
  })

  own.effect("times out after 15 seconds without an answer", function* () {
    const fiber = yield* Effect.forkChild(Effect.flip(askAgainst(plain, StandIn.silence)))
    const call = yield* Queue.take((yield* StandIn.StandIn).calls)
    yield* TestClock.adjust("15 seconds")
    const failure = yield* Fiber.join(fiber)
    assert.deepStrictEqual([failure.reason, failure.scope, failure.retry], ["timeout", "member_state", "later"])
    yield* call.closed
  })

  own.effect("adds attributes to the attempt's span, but no VAT ID, no company data and no span of its own", function* () {
    const standIn = yield* StandIn.StandIn
    const bzst = yield* Bzst.Bzst
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    yield* standIn.next(StandIn.answer(404, bzstStatus("evatr-2001")), StandIn.answer(500, bzstStatus("evatr-2007")))
    const attempt = SourceTelemetry.traced("bzst", plain.vatId, bzst.ask({ ...plain, company }), () => undefined)
    yield* attempt.pipe(Effect.provideService(Tracer.Tracer, tracer))
    yield* Effect.flip(attempt).pipe(Effect.provideService(Tracer.Tracer, tracer))
    const attributes = {
      "vatproof.source": "bzst",
      "vatproof.member_state": "AT",
      "http.request.method": "POST",
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(standIn.baseUrl).port),
      "url.full": `${standIn.baseUrl}/v1/abfrage`,
      "url.template": "/v1/abfrage"
    }
    assert.deepStrictEqual(
      spans.map((span) => [span.name, Object.fromEntries(span.attributes)]),
      [
        [
          "POST /v1/abfrage",
          {
            ...attributes,
            "http.response.status_code": 404,
            "vatproof.outcome": "answered",
            "vatproof.source.code": "evatr-2001"
          }
        ],
        [
          "POST /v1/abfrage",
          {
            ...attributes,
            "http.response.status_code": 500,
            "vatproof.outcome": "member_state_unavailable",
            "vatproof.source.code": "evatr-2007",
            "error.type": "500"
          }
        ]
      ]
    )
  })
})

layer(parts)("an answer of the BZSt", (it) => {
  // The HTTP status does not matter: the BZSt's documents contradict each other, and proxies may change it.
  const https = (status: string) => new Set([httpStatusOf(status), 200, 400, 403, 404, 500])
  for (const [status, { outcome }] of evatrStatuses) {
    it.effect(`has the outcome of its status ${status}, with any HTTP status`, function* () {
      for (const httpStatus of https(status)) {
        const result = yield* Effect.result(askAgainst(plain, StandIn.answer(httpStatus, bzstStatus(status))))
        if (typeof outcome === "string") {
          const answer = yield* Effect.fromResult(result)
          assert.deepStrictEqual([answer.valid, answer.status, answer.code], [outcome === "valid", status, status])
          assert.strictEqual(answer.evidence.http_status, httpStatus)
        } else {
          assert.containSubset(yield* Effect.flip(Effect.fromResult(result)), { source: "bzst", code: status, ...outcome })
        }
      }
    })
  }

  it.effect("is a failure if its status is not in the BZSt's published list", function* () {
    for (const status of ["evatr-9999", "evatr-0009"]) {
      assert.containSubset(yield* Effect.flip(askAgainst(plain, StandIn.answer(200, bzstStatus(status)))), {
        reason: "unavailable",
        code: status,
        scope: "source",
        retry: "later"
      })
    }
  })

  it.effect("is accepted without a time and an id if its status is a failure", function* () {
    const failure = yield* Effect.flip(askAgainst(plain, StandIn.answer(403, { status: "evatr-0006" })))
    assert.strictEqual(failure.reason, "refused")
  })

  it.effect("becomes a failure that contains the pause from its Retry-After header", function* () {
    const script = StandIn.answer(503, bzstStatus("evatr-0011"), { "retry-after": "300" })
    assert.strictEqual((yield* Effect.flip(askAgainst(plain, script))).retry_after_s, 300)
  })

  const dates: ReadonlyArray<readonly [object, string | null, string | null]> = [
    [{ gueltigAb: "2099-01-31" }, "2099-01-31", null],
    [{ gueltigAb: "31.01.2099" }, "2099-01-31", null],
    [{ gueltigAb: "2010-01-01", gueltigBis: "29.02.2020" }, "2010-01-01", "2020-02-29"],
    [{ gueltigAb: "", gueltigBis: null }, null, null],
    [{}, null, null]
  ]
  for (const [fields, from, until] of dates) {
    it.effect(`has the validity dates that the BZSt sends as ${JSON.stringify(fields)}`, function* () {
      const answer = yield* askAgainst(plain, StandIn.answer(200, bzstStatus("evatr-2006", fields)))
      assert.deepStrictEqual([answer.valid, answer.valid_from, answer.valid_until], [false, from, until])
    })
  }

  const letters: ReadonlyArray<readonly [object, ReadonlyArray<string | null>]> = [
    [{ ergFirmenname: "A", ergStrasse: "B", ergPlz: "C", ergOrt: "D" }, ["A", "B", "C", "D"]],
    [{ ergFirmenname: "B", ergStrasse: "", ergPlz: null }, ["B", null, null, null]]
  ]
  for (const [fields, expected] of letters) {
    it.effect(`has the comparison results that the BZSt sends as ${JSON.stringify(fields)}`, function* () {
      const answer = yield* askAgainst({ ...plain, company }, StandIn.answer(200, bzstStatus("evatr-0000", fields)))
      assert.deepStrictEqual([answer.name_match, answer.street_match, answer.zip_match, answer.city_match], expected)
    })
  }

  it.effect.each(["evatr-0003", "evatr-2001", "evatr-2002", "evatr-2006", "evatr-2008"])(
    "has no comparison results with the status %s, even if the BZSt sends some",
    function* (status) {
      const fields = { ergFirmenname: "A", ergStrasse: "C", ergPlz: "B", ergOrt: "A" }
      const answer = yield* askAgainst({ ...plain, company }, StandIn.answer(200, bzstStatus(status, fields)))
      assert.deepStrictEqual(
        [answer.name_match, answer.street_match, answer.zip_match, answer.city_match],
        [null, null, null, null]
      )
    }
  )

  it.effect("may lack an id", function* () {
    for (const none of ["", null, undefined]) {
      assert.isNull((yield* askAgainst(plain, StandIn.answer(200, bzstStatus("evatr-0000", { id: none })))).request_id)
    }
  })
})

layer(parts)("the BZSt's list of member states", (it) => {
  const infoOf = Effect.fnUntraced(function* (status: number, body: unknown) {
    const standIn = yield* StandIn.StandIn
    yield* standIn.next(StandIn.answer(status, body))
    return yield* (yield* Bzst.Bzst).info
  })

  it.effect("states for each member state whether its register is available", function* () {
    const states = yield* infoOf(200, [
      { alpha2: "AT", name: "Österreich", verfuegbar: true },
      { alpha2: "FR", name: "Frankreich", verfuegbar: false }
    ])
    assert.deepStrictEqual(states, [
      { alpha2: "AT", name: "Österreich", available: true },
      { alpha2: "FR", name: "Frankreich", available: false }
    ])
    const { head } = yield* Queue.take((yield* StandIn.StandIn).calls)
    assert.match(head, /^GET \/v1\/info\/eu_mitgliedstaaten HTTP/u)
  })

  it.effect("is reported as a failure if the BZSt sends an error or an unexpected body", function* () {
    const bodies: ReadonlyArray<readonly [number, unknown, string]> = [
      [503, "", "unavailable"],
      [200, {}, "malformed"],
      [200, [{ alpha2: "AT", name: "Österreich", verfuegbar: "ja" }], "malformed"],
      [404, [], "malformed"]
    ]
    for (const [status, body, reason] of bodies) {
      assert.strictEqual((yield* Effect.flip(infoOf(status, body))).reason, reason)
    }
  })
})

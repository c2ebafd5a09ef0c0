import { DateTime, Effect, Exit, Fiber, Layer, Queue, Result, Schema, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import { Answer } from "#domain/vat/Verdict.ts"
import * as Vies from "#infra/sources/Vies.ts"
import { viesCodes } from "#infra/sources/ViesCodes.ts"
import * as SourceTelemetry from "#infra/sources/SourceTelemetry.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import { viesAnswer, viesClock, viesError } from "#test/support/RecordedAnswers.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, describe, fresh, it } from "#test/support/Test.ts"

const parts = Layer.unwrap(Effect.map(StandIn.StandIn, ({ baseUrl }) => Vies.layer({ baseUrl }))).pipe(
  Layer.provideMerge([StandIn.layer, viesClock]),
  Layer.provide(SourceHttp.layerClient)
)

const id = (text: string): VatId => Result.getOrThrow(parse(text))
const czech = { vatId: id("CZ45274649"), requester: null }
const asRequester = { ...czech, requester: id("DE811115368") }

const { name: _name, address: _address, requestIdentifier: _identifier, ...bare } = viesAnswer

const checkAgainst = Effect.fnUntraced(function* (question: Vies.Question, ...scripts: ReadonlyArray<StandIn.Script>) {
  const standIn = yield* StandIn.StandIn
  const vies = yield* Vies.Vies
  yield* standIn.next(...scripts)
  return yield* vies.check(question)
})

/** The bodies of the sent requests, oldest first. */
const sent = Effect.gen(function* () {
  const { calls } = yield* StandIn.StandIn
  return (yield* Queue.takeAll(calls)).map(({ body }) => JSON.parse(body))
})

const own = fresh(parts)

describe("a query to VIES", () => {
  own.effect("sends the VAT ID without its prefix, and returns the verdict with the exact request and response", function* () {
    const answer = yield* checkAgainst(czech, StandIn.answer(200, viesAnswer))
    const response = JSON.stringify(viesAnswer)
    assert.deepStrictEqual(answer, {
      source: "vies",
      valid: true,
      code: null,
      answered_at: DateTime.makeUnsafe("2026-10-03T21:02:05.698Z"),
      company_name: "ČEZ, a. s.",
      company_address: "Duhová 1444/2\nPRAHA 4 - MICHLE\n140 00  PRAHA 4",
      consultation_number: null,
      valid_from: null,
      valid_until: null,
      evidence: {
        request: `{"countryCode":"CZ","vatNumber":"45274649"}`,
        response,
        response_sha256: createHash("sha256").update(response).digest("hex"),
        http_status: 200
      }
    })
    assert.isTrue(Schema.is(Answer)(answer))
    const call = yield* Queue.take((yield* StandIn.StandIn).calls)
    assert.match(call.head, /^POST \/check-vat-number HTTP/u)
  })

  own.effect("sends the requester without its prefix, and returns the consultation number", function* () {
    const answer = yield* checkAgainst(asRequester, StandIn.answer(200, { ...viesAnswer, requestIdentifier: "WAPIAAAAaEDkvhHx" }))
    assert.strictEqual(answer.consultation_number, "WAPIAAAAaEDkvhHx")
    assert.deepStrictEqual(yield* sent, [
      {
        countryCode: "CZ",
        vatNumber: "45274649",
        requesterMemberStateCode: "DE",
        requesterNumber: "811115368"
      }
    ])
  })

  own.effect("is repeated without the requester if VIES rejects the requester", function* () {
    const answer = yield* checkAgainst(
      asRequester,
      StandIn.answer(200, viesError("INVALID_REQUESTER_INFO")),
      StandIn.answer(200, { ...viesAnswer, requestIdentifier: "WAPIAAAAaEDkvhHx" })
    )
    assert.isTrue(answer.valid)
    assert.isNull(answer.consultation_number)
    assert.strictEqual(answer.evidence.request, `{"countryCode":"CZ","vatNumber":"45274649"}`)
    assert.lengthOf(yield* sent, 2)
  })

  own.effect("is repeated only once, and only if VIES rejects the requester", function* () {
    const rejected = StandIn.answer(200, viesError("INVALID_REQUESTER_INFO"))
    const twice = yield* Effect.flip(checkAgainst(asRequester, rejected, rejected))
    assert.strictEqual(twice.reason, "requester_rejected")
    assert.lengthOf(yield* sent, 2)
    yield* Effect.flip(checkAgainst(czech, rejected))
    yield* Effect.flip(checkAgainst(asRequester, StandIn.answer(200, viesError("MS_UNAVAILABLE"))))
    assert.lengthOf(yield* sent, 2)
  })

  own.effect("times out after 20 seconds, including the repetition", function* () {
    const fiber = yield* Effect.forkChild(
      Effect.flip(
        checkAgainst(
          asRequester,
          (call) =>
            Effect.andThen(TestClock.adjust("15 seconds"), StandIn.answer(200, viesError("INVALID_REQUESTER_INFO"))(call)),
          StandIn.silence
        )
      )
    )
    const { calls } = yield* StandIn.StandIn
    yield* Queue.takeN(calls, 2)
    yield* TestClock.adjust("4999 millis")
    assert.strictEqual(fiber.pollUnsafe(), undefined)
    yield* TestClock.adjust("1 millis")
    const failure = yield* Fiber.join(fiber)
    assert.deepStrictEqual([failure.reason, failure.scope, failure.retry], ["timeout", "member_state", "later"])
  })

  const bodies: ReadonlyArray<readonly [string, VatId, object, object]> = [
    [
      "an invalid number",
      id("CZ11111111"),
      { ...viesAnswer, vatNumber: "11111111", valid: false, name: "---", address: "---" },
      { valid: false, company_name: null, company_address: null }
    ],
    [
      "a member state that discloses no company data",
      id("DE811115368"),
      { ...viesAnswer, countryCode: "DE", vatNumber: "811115368", name: "---", address: "---" },
      { valid: true, company_name: null, company_address: null }
    ],
    ["fields that are absent", czech.vatId, bare, { valid: true, company_name: null, consultation_number: null }],
    ["fields that are null", czech.vatId, { ...viesAnswer, name: null, address: null }, { valid: true, company_name: null }],
    [
      "a name that looks like a repeated key",
      czech.vatId,
      { ...viesAnswer, name: '"valid":false, \\"valid\\":', address: ":" },
      { valid: true, company_name: '"valid":false, \\"valid\\":', company_address: ":" }
    ],
    ["blank fields", czech.vatId, { ...viesAnswer, name: " ", address: "\n" }, { company_name: null, company_address: null }],
    ["a number that VIES repeats with blanks", czech.vatId, { ...viesAnswer, vatNumber: "45 274 649" }, { valid: true }],
    [
      "Greece, which VIES calls EL",
      id("GR094014201"),
      { ...viesAnswer, countryCode: "EL", vatNumber: "094014201" },
      { valid: true }
    ]
  ]
  for (const [name, vatId, body, expected] of bodies) {
    own.effect(`returns an answer for ${name}`, function* () {
      const answer = yield* checkAgainst({ vatId, requester: id("DE811115368") }, StandIn.answer(200, body))
      assert.containSubset(answer, expected)
    })
  }

  for (const [code, fault] of viesCodes) {
    for (const status of [200, 400, 500]) {
      own.effect(`fails if VIES answers ${code} with HTTP status ${status}`, function* () {
        const failure = yield* Effect.flip(checkAgainst(czech, StandIn.answer(status, viesError(code))))
        assert.containSubset(failure, { source: "vies", code, ...fault })
      })
    }
  }

  own.effect("returns an answer whose time is almost a day ago or ahead", function* () {
    for (const requestDate of ["2026-10-02T21:02:06.000Z", "2026-10-04T21:02:05.000Z"]) {
      const { answered_at } = yield* checkAgainst(czech, StandIn.answer(200, { ...viesAnswer, requestDate }))
      assert.deepStrictEqual(answered_at, DateTime.makeUnsafe(requestDate))
    }
  })

  own.effect("fails with the pause that the Retry-After header of VIES requests", function* () {
    const script = StandIn.answer(503, viesError("SERVICE_UNAVAILABLE"), { "retry-after": "90" })
    assert.strictEqual((yield* Effect.flip(checkAgainst(czech, script))).retry_after_s, 90)
  })

  own.effect("adds attributes to the attempt's span, but no VAT ID, no company data and no span of its own", function* () {
    const standIn = yield* StandIn.StandIn
    const vies = yield* Vies.Vies
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    yield* standIn.next(StandIn.answer(200, viesAnswer), StandIn.answer(200, viesError("MS_UNAVAILABLE")))
    const attempt = SourceTelemetry.traced("vies", czech.vatId, vies.check(asRequester), () => undefined)
    yield* attempt.pipe(Effect.provideService(Tracer.Tracer, tracer))
    yield* Effect.flip(attempt).pipe(Effect.provideService(Tracer.Tracer, tracer))
    const attributes = {
      "vatproof.source": "vies",
      "vatproof.member_state": "CZ",
      "http.request.method": "POST",
      "server.address": "127.0.0.1",
      "server.port": Number(new URL(standIn.baseUrl).port),
      "url.full": `${standIn.baseUrl}/check-vat-number`,
      "url.template": "/check-vat-number",
      "http.response.status_code": 200
    }
    assert.deepStrictEqual(
      spans.map((span) => [span.name, Object.fromEntries(span.attributes)]),
      [
        ["POST /check-vat-number", { ...attributes, "vatproof.outcome": "answered" }],
        [
          "POST /check-vat-number",
          {
            ...attributes,
            "vatproof.outcome": "member_state_unavailable",
            "vatproof.source.code": "MS_UNAVAILABLE",
            "error.type": "member_state_unavailable"
          }
        ]
      ]
    )
    for (const { status } of spans) {
      const message = status._tag === "Ended" && Exit.isFailure(status.exit) ? String(status.exit.cause) : ""
      assert.notInclude(message, "45274649")
    }
  })
})

describe("the availability of VIES", () => {
  const statusOf = (status: number, body: unknown) =>
    Effect.gen(function* () {
      const standIn = yield* StandIn.StandIn
      yield* standIn.next(StandIn.answer(status, body))
      return yield* (yield* Vies.Vies).available
    }).pipe(Effect.provide(parts))

  it.effect.each([true, false])("is %s if VIES reports this", function* (available) {
    assert.strictEqual(yield* statusOf(200, { vow: { available }, countries: [] }), available)
  })

  it.effect("is reported as a failure if VIES sends an error or an unexpected body", function* () {
    assert.strictEqual((yield* Effect.flip(statusOf(200, viesError("SERVICE_UNAVAILABLE")))).code, "SERVICE_UNAVAILABLE")
    assert.strictEqual((yield* Effect.flip(statusOf(500, "<html>"))).reason, "unavailable")
    assert.strictEqual((yield* Effect.flip(statusOf(200, { vow: { available: "yes" }, countries: [] }))).reason, "malformed")
  })
})

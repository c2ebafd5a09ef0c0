import { Effect, Layer, Result, Schema } from "effect"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import * as Vies from "#infra/sources/Vies.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import { viesAnswer, viesClock, viesError } from "#test/support/RecordedAnswers.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, layer } from "#test/support/Test.ts"

const parts = Layer.unwrap(Effect.map(StandIn.StandIn, ({ baseUrl }) => Vies.layer({ baseUrl }))).pipe(
  Layer.provideMerge([StandIn.layer, viesClock]),
  Layer.provide(SourceHttp.layerClient)
)

const id = (text: string): VatId => Result.getOrThrow(parse(text))
const czech = { vatId: id("CZ45274649"), requester: null }

const checkAgainst = Effect.fnUntraced(function* (question: Vies.Question, ...scripts: ReadonlyArray<StandIn.Script>) {
  const standIn = yield* StandIn.StandIn
  const vies = yield* Vies.Vies
  yield* standIn.next(...scripts)
  return yield* vies.check(question)
})

const malformed = { source: "vies", reason: "malformed", code: null, scope: "source", retry: "soon" }
const unavailable = { source: "vies", reason: "unavailable", scope: "source", retry: "later" }

const noVerdicts: ReadonlyArray<readonly [string, unknown, object]> = [
  ["an unknown code", viesError("GREMLINS"), { ...unavailable, code: "GREMLINS" }],
  ["an error envelope without errors", { actionSucceed: false }, malformed],
  ["an error envelope with an empty list of errors", { actionSucceed: false, errorWrappers: [] }, malformed],
  ["an error envelope with an error that is a number", { actionSucceed: false, errorWrappers: [{ error: 7 }] }, malformed],
  ["an error envelope with a very long error", viesError("x".repeat(100_000)), malformed],
  ["an error envelope around a verdict", { ...viesAnswer, ...viesError("TIMEOUT") }, { reason: "timeout", code: "TIMEOUT" }],
  ["a malformed error envelope around a verdict", { ...viesAnswer, actionSucceed: false, errorWrappers: "x" }, malformed],
  [
    "an error beside a verdict, without an error envelope",
    { ...viesAnswer, valid: false, errorWrappers: [{ error: "MS_UNAVAILABLE" }] },
    { reason: "member_state_unavailable", code: "MS_UNAVAILABLE" }
  ],
  [
    "an error beside a verdict, in an envelope that reports success",
    { ...viesAnswer, valid: false, actionSucceed: true, errorWrappers: [{ error: "MS_UNAVAILABLE" }] },
    { reason: "member_state_unavailable", code: "MS_UNAVAILABLE" }
  ],
  [
    "an error of the other VIES endpoint beside a verdict",
    { ...viesAnswer, valid: false, userError: "MS_MAX_CONCURRENT_REQ" },
    { reason: "throttled", code: "MS_MAX_CONCURRENT_REQ" }
  ],
  ["a malformed error of the other VIES endpoint beside a verdict", { ...viesAnswer, valid: false, userError: 7 }, malformed],
  ["malformed errors beside a verdict", { ...viesAnswer, errorWrappers: "x" }, malformed],
  ["a verdict in a malformed envelope", { ...viesAnswer, actionSucceed: "yes" }, malformed],
  ["an envelope that reports success without a verdict", { actionSucceed: true }, malformed],
  ["the format of the other VIES endpoint", { isValid: true, userError: "VALID", vatNumber: "45274649" }, malformed],
  ["a field valid that is a string", { ...viesAnswer, valid: "true" }, malformed],
  ["a field valid that is a number", { ...viesAnswer, valid: 1 }, malformed],
  ["a field valid that is null", { ...viesAnswer, valid: null }, malformed],
  ["a name that is a number", { ...viesAnswer, name: 7 }, malformed],
  ["another VAT number", { ...viesAnswer, vatNumber: "45274640" }, malformed],
  ["another member state", { ...viesAnswer, countryCode: "SK" }, malformed],
  ["no VAT number", { ...viesAnswer, vatNumber: undefined }, malformed],
  ["no time", { ...viesAnswer, requestDate: undefined }, malformed],
  ["a malformed time", { ...viesAnswer, requestDate: "yesterday" }, malformed],
  ["a date that does not exist", { ...viesAnswer, requestDate: "2026-02-30T00:00:00Z" }, malformed],
  ["an hour that does not exist", { ...viesAnswer, requestDate: "2026-02-27T24:00:00Z" }, malformed],
  ["the year zero", { ...viesAnswer, requestDate: "0000-01-01T00:00:00+23:59" }, malformed],
  ["a year in the far future", { ...viesAnswer, requestDate: "9999-12-31T23:59:59-23:59" }, malformed],
  ["two verdicts in two formats", { ...viesAnswer, valid: true, isValid: false }, malformed],
  ["a valid verdict beside the code INVALID", { ...viesAnswer, valid: true, userError: "INVALID" }, malformed],
  ["an invalid verdict beside the code VALID", { ...viesAnswer, valid: false, userError: "VALID" }, malformed],
  ["an error in an unknown field beside a verdict", { ...viesAnswer, valid: false, error: "MS_UNAVAILABLE" }, malformed],
  ["a time more than a day ago", { ...viesAnswer, requestDate: "2026-10-02T21:02:05.000Z" }, malformed],
  ["a time more than a day ahead", { ...viesAnswer, requestDate: "2026-10-04T21:02:06.000Z" }, malformed],
  ["a time without offset", { ...viesAnswer, requestDate: "2026-10-03T21:02:05" }, malformed],
  ["null", "null", malformed],
  ["a list", [viesAnswer], malformed],
  ["a number", "7", malformed],
  ["true", "true", malformed],
  ["an empty body", "", malformed],
  ["a web page", "<html>Service temporarily unavailable</html>", malformed],
  ["truncated JSON", JSON.stringify(viesAnswer).slice(0, -1), malformed],
  ["the key valid twice, with false and with true", `{"valid":false,${JSON.stringify(viesAnswer).slice(1)}`, malformed],
  ["a key that is repeated in escaped form", `{"\\u0076alid" :false,${JSON.stringify(viesAnswer).slice(1)}`, malformed],
  ["a repeated key in an unused field", `{"x":[{"y":1,"y":1}],${JSON.stringify(viesAnswer).slice(1)}`, malformed],
  [
    "an array nested 100,000 times",
    `{"x":${"[".repeat(100_000)}${"]".repeat(100_000)},${JSON.stringify(viesAnswer).slice(1)}`,
    malformed
  ],
  ["two verdicts", JSON.stringify(viesAnswer).repeat(2), malformed]
]

layer(parts)("the client of VIES", (it) => {
  for (const [name, body, expected] of noVerdicts) {
    it.effect(`reports a failure for a response with ${name}`, function* () {
      assert.containSubset(yield* Effect.flip(checkAgainst(czech, StandIn.answer(200, body))), expected)
    })
  }

  for (const status of [201, 302, 400, 404, 500, 503]) {
    it.effect(
      `reports a failure for a verdict with HTTP status ${status}, which VIES does not document for verdicts`,
      function* () {
        const failure = yield* Effect.flip(checkAgainst(czech, StandIn.answer(status, viesAnswer)))
        assert.strictEqual(failure.code, `HTTP ${status}`)
      }
    )
  }

  it.effect.prop("reports a failure for a response with arbitrary JSON", [Schema.Json], ([json]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(checkAgainst(czech, StandIn.answer(200, JSON.stringify(json))))
      assert.strictEqual(failure.source, "vies")
    })
  )

  it.effect.prop("reports a failure for a response with arbitrary bytes", [Schema.Uint8Array], ([bytes]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(checkAgainst(czech, StandIn.answer(200, bytes)))
      assert.strictEqual(failure.reason, "malformed")
    })
  )

  const Change = Schema.Struct({
    answer: Schema.Literals([true, false]),
    field: Schema.Literals(["countryCode", "vatNumber", "requestDate", "valid", "name"]),
    value: Schema.Union([
      Schema.Literals([true, false, "true", 1, "", "CZ", "DE", "45274649", "4527464", "CZ45274649", viesAnswer.requestDate]),
      Schema.Json,
      Schema.Undefined
    ])
  })
  const verdicts = new Set<unknown>()
  it.effect.prop(
    "reports a failure if and only if a field of the response has a wrong value",
    [Change],
    ([{ answer, field, value }]) =>
      Effect.gen(function* () {
        const body = { ...viesAnswer, valid: answer, [field]: value }
        const inPlace =
          body.countryCode === "CZ" &&
          body.vatNumber === "45274649" &&
          body.requestDate === viesAnswer.requestDate &&
          typeof body.valid === "boolean" &&
          (body.name === undefined || body.name === null || typeof body.name === "string")
        const result = yield* Effect.result(checkAgainst(czech, StandIn.answer(200, body)))
        assert.strictEqual(Result.isSuccess(result), inPlace)
        verdicts.add(Result.isSuccess(result) ? result.success.valid : null)
        if (Result.isSuccess(result)) assert.strictEqual(result.success.valid, body.valid)
      }),
    { arbitrary: { runs: 400 } }
  )
  it("returns at least one failure, one valid verdict and one invalid verdict in the preceding test with generated responses", () => {
    assert.deepStrictEqual(verdicts, new Set([null, true, false]))
  })
})

import { Effect, Layer, Result, Schema } from "effect"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import * as Bzst from "#infra/sources/Bzst.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import { bzstAnswer, bzstClock, bzstStatus } from "#test/support/RecordedAnswers.ts"
import * as StandIn from "#test/support/StandIn.ts"
import { assert, layer } from "#test/support/Test.ts"

const parts = Layer.unwrap(Effect.map(StandIn.StandIn, ({ baseUrl }) => Bzst.layer({ baseUrl }))).pipe(
  Layer.provideMerge([StandIn.layer, bzstClock]),
  Layer.provide(SourceHttp.layerClient)
)

const id = (text: string): VatId => Result.getOrThrow(parse(text))
const plain = { vatId: id("ATU12345678"), requester: id("DE123456789"), company: null }

const askAgainst = Effect.fnUntraced(function* (question: Bzst.Question, script: StandIn.Script) {
  const standIn = yield* StandIn.StandIn
  const bzst = yield* Bzst.Bzst
  yield* standIn.next(script)
  return yield* bzst.ask(question)
})

const malformed = { source: "bzst", reason: "malformed", scope: "source", retry: "soon" }

const noVerdicts: ReadonlyArray<readonly [string, number, unknown, object]> = [
  [
    "the error of a web framework",
    500,
    { timestamp: "2026-01-01", status: 500, error: "Internal Server Error" },
    { reason: "unavailable" }
  ],
  ["an HTML page with status 404", 404, "<html>Not found</html>", { ...malformed, code: "HTTP 404" }],
  ["a firewall's page", 403, "<html>Request rejected</html>", { reason: "blocked", scope: "source", retry: "later" }],
  ["the status 429", 429, "slow down", { reason: "throttled", retry: "later" }],
  ["a status in upper case", 200, bzstStatus("EVATR-0000"), malformed],
  ["a status with a suffix", 200, bzstStatus("evatr-0000 "), malformed],
  ["a status that is a number", 200, { ...bzstAnswer, status: 0 }, malformed],
  ["no status", 200, { ...bzstAnswer, status: undefined }, malformed],
  ["no time", 200, { ...bzstAnswer, anfrageZeitpunkt: undefined }, { ...malformed, code: "evatr-0000" }],
  ["a time more than a day ago", 200, { ...bzstAnswer, anfrageZeitpunkt: "2025-09-21T18:33:04+02:00" }, malformed],
  ["a time more than a day ahead", 200, { ...bzstAnswer, anfrageZeitpunkt: "2025-09-23T18:33:05+02:00" }, malformed],
  ["a time without offset", 200, { ...bzstAnswer, anfrageZeitpunkt: "2025-09-22T18:33:04.564553064" }, malformed],
  ["a malformed time", 200, { ...bzstAnswer, anfrageZeitpunkt: "2025-13-22T18:33:04Z" }, malformed],
  ["an unknown letter", 200, { ...bzstAnswer, ergOrt: "E" }, malformed],
  ["a boolean letter", 200, { ...bzstAnswer, ergOrt: true }, malformed],
  ["an id that is a number", 200, { ...bzstAnswer, id: 7 }, malformed],
  ["a date that does not exist", 200, bzstStatus("evatr-2006", { gueltigAb: "2021-02-29" }), malformed],
  ["a date in an unknown format", 200, bzstStatus("evatr-2002", { gueltigAb: "1/2/2021" }), malformed],
  ["null", 200, "null", malformed],
  ["a list", 200, [bzstAnswer], malformed],
  ["a number", 200, "7", malformed],
  ["an empty body", 204, "", { ...malformed, code: "HTTP 204" }],
  ["truncated JSON", 200, JSON.stringify(bzstAnswer).slice(0, -1), malformed],
  ["two statuses", 200, `{"status":"evatr-2001",${JSON.stringify(bzstAnswer).slice(1)}`, malformed]
]

layer(parts)("the client of the BZSt", (it) => {
  for (const [name, http, body, expected] of noVerdicts) {
    it.effect(`reports a failure for a response with ${name}`, function* () {
      const script = http === 204 ? StandIn.raw("HTTP/1.1 204 x\r\n\r\n") : StandIn.answer(http, body)
      assert.containSubset(yield* Effect.flip(askAgainst(plain, script)), expected)
    })
  }

  it.effect.prop("reports a failure for a response with arbitrary JSON", [Schema.Json], ([json]) =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(askAgainst(plain, StandIn.answer(200, JSON.stringify(json))))
      assert.strictEqual(failure.source, "bzst")
    })
  )

  it.effect.prop("reports a failure for a response with arbitrary bytes", [Schema.Uint8Array], ([bytes]) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(askAgainst(plain, StandIn.answer(200, bytes)))).reason, "malformed")
    })
  )

  const Change = Schema.Struct({
    answer: Schema.Literals(["evatr-0000", "evatr-2001"]),
    field: Schema.Literals(["status", "anfrageZeitpunkt", "id", "ergFirmenname", "ergOrt"]),
    value: Schema.Union([
      Schema.Literals(["evatr-0006", "evatr-000", "A", "D", "E", "a", "", true, 0]),
      Schema.Json,
      Schema.Undefined
    ])
  })
  const verdicts = new Set<unknown>()
  const isLetter = (value: unknown) => value === undefined || value === null || /^[ABCD]?$/u.test(String(value))
  it.effect.prop(
    "reports a failure if and only if a field of the response has a wrong value",
    [Change],
    ([{ answer, field, value }]) =>
      Effect.gen(function* () {
        const body: { readonly [K in keyof typeof bzstAnswer]: unknown } = { ...bzstAnswer, status: answer, [field]: value }
        const inPlace =
          (body.status === "evatr-0000" || body.status === "evatr-2001") &&
          body.anfrageZeitpunkt === bzstAnswer.anfrageZeitpunkt &&
          (body.id === undefined || body.id === null || typeof body.id === "string") &&
          [body.ergFirmenname, body.ergOrt].every((letter) => typeof letter !== "object" || letter === null) &&
          isLetter(body.ergFirmenname) &&
          isLetter(body.ergOrt)
        const result = yield* Effect.result(askAgainst(plain, StandIn.answer(200, body)))
        assert.strictEqual(Result.isSuccess(result), inPlace)
        verdicts.add(Result.isSuccess(result) ? result.success.valid : null)
        if (Result.isSuccess(result)) assert.strictEqual(result.success.status, body.status)
      }),
    { arbitrary: { runs: 400 } }
  )
  it("returns at least one failure, one valid verdict and one invalid verdict in the preceding test with generated responses", () => {
    assert.deepStrictEqual(verdicts, new Set([null, true, false]))
  })
})

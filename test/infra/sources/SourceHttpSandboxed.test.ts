/** Runs the clients of both sources against the sandbox. Each magic number must have the outcome that the tables of codes define. */
import { Context, Effect, Layer, Result } from "effect"
import { parse, type VatId } from "#domain/vat/VatId.ts"
import type { Answer, SourceFailure } from "#domain/vat/Verdict.ts"
import * as Bzst from "#infra/sources/Bzst.ts"
import { evatrStatuses, unknownStatus } from "#infra/sources/EvatrStatus.ts"
import { unknownCode, viesCodes } from "#infra/sources/ViesCodes.ts"
import * as Vies from "#infra/sources/Vies.ts"
import type { Behaviour } from "#infra/sandbox/Fault.ts"
import { magicNumbers } from "#infra/sandbox/MagicNumbers.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import * as SourceHttp from "#infra/sources/SourceHttp.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Clients with a short timeout, for the magic numbers for which a source hangs. */
class Hasty extends Context.Service<Hasty, { readonly vies: Vies.Vies["Service"]; readonly bzst: Bzst.Bzst["Service"] }>()(
  "vatproof/test/Hasty"
) {}

const clients = Layer.unwrap(
  Effect.map(Sandbox.Sandbox, ({ viesBaseUrl, bzstBaseUrl }) =>
    Layer.mergeAll(
      Vies.layer({ baseUrl: viesBaseUrl }),
      Bzst.layer({ baseUrl: bzstBaseUrl }),
      Layer.effect(
        Hasty,
        Effect.all({
          vies: Vies.make({ baseUrl: viesBaseUrl, timeout: "100 millis" }),
          bzst: Bzst.make({ baseUrl: bzstBaseUrl, timeout: "100 millis" })
        })
      )
    )
  )
)

const parts = clients.pipe(
  Layer.provideMerge(Sandbox.layer({ host: "127.0.0.1", port: 0 })),
  Layer.provide(SourceHttp.layerClient)
)

const id = (text: string): VatId => Result.getOrThrow(parse(text))
const requester = id("DE811115368")

const waits = (behaviour: Behaviour) =>
  behaviour.latencyMs !== undefined || behaviour.breakage === "hang" || behaviour.breakage === "drip"

/** `truncated` is the outcome of a body that ends early. undici reports such a body differently without keep-alive. */
interface Tables {
  readonly ok: string
  readonly truncated: string
  readonly code: (code: string) => string
}
const ofVies: Tables = { ok: "valid", truncated: "unreachable source soon", code: (code) => viesCode(code) }
const ofBzst: Tables = { ok: "valid", truncated: "malformed source soon", code: (code) => bzstCode(code) }

/** Returns the outcome that a client must report: valid, invalid, or the reason, scope and retry of a failure. */
const expected = (behaviour: Behaviour, tables: Tables): string => {
  if (waits(behaviour)) return "timeout member_state later"
  if (behaviour.httpStatus === 429) return "throttled source later"
  if (behaviour.httpStatus !== undefined) return `unavailable source ${behaviour.httpStatus > 502 ? "later" : "soon"}`
  switch (behaviour.breakage) {
    case "reset":
      return "unreachable source soon"
    case "reset_mid_body":
    case "short_body":
      return tables.truncated
    case "truncated_json":
    case "html":
    case "empty":
    case "wrong_types":
    case "huge":
      return "malformed source soon"
    default:
      return behaviour.code === undefined ? tables.ok : tables.code(behaviour.code)
  }
}

const words = (fault: Pick<SourceFailure, "reason" | "scope" | "retry">) => `${fault.reason} ${fault.scope} ${fault.retry}`

const outcome = (result: Result.Result<Answer, SourceFailure>) =>
  Result.match(result, { onSuccess: ({ valid }) => (valid ? "valid" : "invalid"), onFailure: words })

const viesCode = (code: string) =>
  // VIES rejects the first call because of the requester, and answers the retry without the requester.
  code === "VALID" || code === "INVALID_REQUESTER_INFO"
    ? "valid"
    : code === "INVALID"
      ? "invalid"
      : words(viesCodes.get(code) ?? unknownCode)

const bzstCode = (code: string) => {
  const meant = evatrStatuses.get(code)?.outcome ?? unknownStatus
  return typeof meant === "string" ? meant : words(meant)
}

layer(parts, { excludeTestServices: true })("the clients of both sources", (it) => {
  for (const [ending, magic] of magicNumbers) {
    it.effect(`decode the answer to the magic number ${ending}: ${magic.meaning}`, function* () {
      const hasty = yield* Hasty
      const vies = waits(magic.vies) ? hasty.vies : yield* Vies.Vies
      const bzst = waits(magic.bzst) ? hasty.bzst : yield* Bzst.Bzst
      const sandbox = yield* Sandbox.Sandbox
      for (const prefix of waits(magic.vies) || waits(magic.bzst) ? ["DE"] : ["DE", "AT"]) {
        const vatId = id(vatIdEnding(prefix, ending))
        yield* sandbox.reset
        const company = { name: "Muster GmbH", street: null, zip: null, city: "Berlin" }
        assert.strictEqual(outcome(yield* Effect.result(vies.check({ vatId, requester }))), expected(magic.vies, ofVies))
        assert.strictEqual(outcome(yield* Effect.result(bzst.ask({ vatId, requester, company }))), expected(magic.bzst, ofBzst))
      }
    })
  }

  it.effect("decode names, consultation numbers and comparison results", function* () {
    const vies = yield* Vies.Vies
    const bzst = yield* Bzst.Bzst
    const vatId = id(vatIdEnding("AT", "999120"))
    const answer = yield* vies.check({ vatId, requester })
    assert.isNotNull(answer.consultation_number)
    assert.match(answer.company_name ?? "", /[äöüß]/iu)
    assert.isNull((yield* vies.check({ vatId: id(vatIdEnding("DE", "999120")), requester })).company_name)
    assert.isNull((yield* vies.check({ vatId, requester: null })).consultation_number)
    const name = answer.company_name
    const confirmed = yield* bzst.ask({ vatId, requester, company: { name, street: null, zip: null, city: "Nowhere" } })
    assert.deepStrictEqual(
      [confirmed.name_match, confirmed.street_match, confirmed.zip_match, confirmed.city_match],
      ["A", "C", "C", "B"]
    )
    assert.match(confirmed.request_id ?? "", /^[0-9a-f]{16}$/u)
    const partial = yield* bzst.ask({ vatId, requester, company: { name, street: null, zip: null, city: null } })
    assert.deepStrictEqual([partial.status, partial.evidence.http_status, partial.name_match], ["evatr-0003", 400, null])
  })

  it.effect("decode validity dates in both formats", function* () {
    const bzst = yield* Bzst.Bzst
    for (const prefix of ["AT", "RO", "PT", "SK"]) {
      const answer = yield* bzst.ask({ vatId: id(vatIdEnding(prefix, "992006")), requester, company: null })
      assert.deepStrictEqual([answer.valid, answer.valid_from, answer.valid_until], [false, "2010-01-01", "2020-12-31"])
    }
  })

  it.effect("decode the availability of VIES, and of the member states at the BZSt", function* () {
    assert.isTrue(yield* (yield* Vies.Vies).available)
    assert.lengthOf(yield* (yield* Bzst.Bzst).info, 27)
  })
})

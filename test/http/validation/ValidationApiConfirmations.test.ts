import { Effect, Schema } from "effect"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import { confirm, muster, newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const usedOf = (reply: { readonly headers: Readonly<Record<string, string | undefined>> }) =>
  Number(reply.headers["x-service-usage"]?.split("/")[0])

const start = Effect.fnUntraced(function* (settings: RunningService.Settings = {}) {
  const sandbox = yield* Sandbox
  yield* sandbox.reset
  const service = yield* RunningService.make(settings)
  return { service, sandbox, key: yield* newPaidKey(service) }
})

const bzstEnding = (status: string) => vatIdEnding("DE", `99${status.slice("evatr-".length)}`)

/** Returns the events about a VAT ID, oldest first. */
const eventsAbout = Effect.fnUntraced(function* (vatId: string) {
  return (yield* Rows.all(
    { type: Schema.String, units: Schema.Int, data: Schema.String },
    (sql) => sql`SELECT type, units, data FROM vatproof.events WHERE strpos(data, ${`"${vatId}"`}) > 0 ORDER BY position`
  )).map(({ data, type, units }) => ({ type, units, data: parse(data) }))
})
const parse = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Json))

const noMatch = {
  name_match: "not_provided",
  street_match: "not_provided",
  zip_match: "not_provided",
  city_match: "not_provided"
}
const allMatch = { name_match: "match", street_match: "match", zip_match: "match", city_match: "match" }

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a qualified confirmation", (it) => {
  it.effect("is rejected if its company data is not readable text", function* () {
    const { key, sandbox, service } = yield* start()
    const asked = "/v1/validate/DE100440102?requester_vat_id=DE123456789&company_city=Berlin"
    for (const name of ["M%FCller", "K%C3%B6%FC", "%ED%A0%80", "100%", "%zz", "a%00b", "a%0Ab", "%EF%BF%BD"]) {
      const reply = yield* service.ask(`${asked}&company_name=${name}`, { key })
      assert.strictEqual(assertProblem(reply, "VALIDATION_ERROR").details?.[0]?.field, "company_name", name)
    }
    assert.strictEqual(yield* sandbox.checks(), 0)
    assert.strictEqual((yield* service.ask(`${asked}&company_name=M%C3%BCller+%26+100%25&other=%FF`, { key })).status, 200)
  })

  it.effect(
    "with several errors is rejected with the first error in a fixed order, without a source call or a charge",
    function* () {
      const { key, sandbox, service } = yield* start()
      const free = yield* service.newKey
      const poor = yield* newPaidKey(service, "starter")
      yield* service.validate("DE100440100", { key: poor })
      yield* sandbox.reset
      const austrian = "ATU10440101"
      const none = { company_name: "x" }
      const wrongRequester = { ...none, requester_vat_id: "ATU12345678" }
      const refusals = [
        [yield* confirm(service, "not a VAT ID", undefined, none), "INVALID_VAT_ID"],
        [yield* confirm(service, austrian, "svc_live_wrong", none), "UNAUTHORIZED"],
        [yield* confirm(service, austrian, undefined, none), "UNAUTHORIZED"],
        [yield* confirm(service, austrian, free, wrongRequester), "PAYMENT_REQUIRED"],
        [yield* confirm(service, austrian, poor, wrongRequester), "QUALIFIED_CONFIRMATION_UNSUPPORTED"],
        [yield* confirm(service, "DE100440102", poor, wrongRequester), "INVALID_REQUESTER_VAT_ID"],
        [yield* confirm(service, "DE100440102", poor, { ...none, requester_vat_id: "" }), "INVALID_REQUESTER_VAT_ID"],
        [yield* confirm(service, "DE100440102", poor, none), "RATE_LIMIT_EXCEEDED"],
        [yield* confirm(service, "DE100440102", key, { company_name: "x".repeat(301) }), "VALIDATION_ERROR"],
        [yield* confirm(service, "DE100440102", key, { ...none, match_format: "numbers" }), "VALIDATION_ERROR"],
        [yield* confirm(service, "DE100440102;x", key), "INVALID_VAT_ID"]
      ] as const
      for (const [reply, code] of refusals) assertProblem(reply, code)
      const { message, plan } = assertProblem(refusals[3][0], "PAYMENT_REQUIRED")
      assert.match(message, /http/u)
      // Waiting does not help, because only a paid plan allows confirmations. Therefore resets_at is null.
      assert.containSubset(plan, { plan: "free", resets_at: null })
      assert.strictEqual(yield* sandbox.checks(), 0)
      assert.deepStrictEqual(refusals.map(([reply]) => usedOf(reply)).filter(Boolean), [1, 1, 1, 1])
      assert.strictEqual(usedOf(yield* service.ask("/v1/usage", { key })), 0)
    }
  )

  it.effect("returns the comparison results as words or as the BZSt's letters", function* () {
    const { key, service } = yield* start()
    const company = { company_name: "MUSTER GmbH", company_zip: "99999", company_city: "Berlin" }
    const words = yield* confirm(service, "de 100 440 110", key, company)
    assert.containSubset(words, {
      status: 200,
      body: {
        valid: true,
        vat_id: "DE100440110",
        source: "bzst",
        cache: false,
        company_name: null,
        qualified_confirmation: {
          name_match: "match",
          street_match: "not_queried",
          zip_match: "mismatch",
          city_match: "match",
          source: "vatproof-issued"
        }
      }
    })
    assert.match(words.text, /"receipt_id":"VP-QC-\d{8}-[A-Z0-9]{10}","issued_at":"\d{4}-[^"]+Z"/u)
    assert.notInclude(words.text, "confirmation_number")
    const letters = yield* confirm(service, "DE100440110", key, { ...company, match_format: "letters" })
    assert.containSubset(letters, {
      status: 200,
      body: { qualified_confirmation: { name_match: "A", street_match: "C", zip_match: "B", city_match: "A" } }
    })
    assert.match(letters.text, /"confirmation_number":"[0-9a-f]{16}"/u)
    assert.deepStrictEqual([usedOf(words), usedOf(letters)], [1, 2])
  })

  it.effect("returns D as the comparison result of each field that the member state does not disclose", function* () {
    const { key, service } = yield* start()
    const reply = yield* confirm(service, vatIdEnding("DE", "999110"), key, { ...muster, match_format: "letters" })
    assert.containSubset(reply.body, {
      valid: true,
      qualified_confirmation: { name_match: "D", street_match: "D", zip_match: "D", city_match: "D" }
    })
  })

  it.effect.each([
    ["evatr-0000", true],
    ["evatr-2001", false]
  ] as const)("has a verdict, a receipt and a charge if the BZSt answers with %s", function* ([status, valid]) {
    const { key, service } = yield* start()
    const reply = yield* confirm(service, bzstEnding(status), key)
    assert.containSubset(reply, {
      status: 200,
      body: { valid, source: "bzst", qualified_confirmation: status === "evatr-0000" ? allMatch : noMatch }
    })
    assert.strictEqual(usedOf(reply), 1)
    const [event, ...others] = yield* eventsAbout(bzstEnding(status))
    assert.deepStrictEqual([event?.type, event?.units, others], ["ReceiptIssued", 1, []])
    assert.containSubset(event?.data, { answer: { code: status, valid }, receipt: { result: { valid } } })
  })

  it.effect("without a company name or city compares nothing, returns a warning, and is charged", function* () {
    const { key, service } = yield* start()
    for (const company of [{ company_name: "Muster GmbH" }, { company_city: "Berlin" }, { company_zip: "10115" }]) {
      const reply = yield* confirm(service, "DE100440120", key, company)
      const expected = Object.fromEntries(
        ["name", "street", "zip", "city"].map((field) => [
          `${field}_match`,
          `company_${field}` in company ? "not_provided" : "not_queried"
        ])
      )
      assert.containSubset(reply, { status: 200, body: { valid: true, qualified_confirmation: expected } })
      assert.match(reply.headers["warning"] ?? "", /^199 - "Nothing was compared: .*company_name and company_city"$/u)
    }
    assert.strictEqual(usedOf(yield* service.ask("/v1/usage", { key })), 3)
    assert.isUndefined((yield* confirm(service, "DE100440120", key)).headers["warning"])
  })

  it.effect(
    "returns 422 with the BZSt's code if the BZSt refuses it (evatr-0006); the refusal is recorded and not charged",
    function* () {
      const { key, sandbox, service } = yield* start()
      yield* sandbox.configure({ german_targets_admitted: false })
      const reply = yield* confirm(service, "DE100440130", key)
      const { message } = assertProblem(reply, "QUALIFIED_CONFIRMATION_REFUSED")
      assert.match(message, /evatr-0006.*not admitted to ask for German VAT IDs/u)
      assert.strictEqual(usedOf(yield* service.ask("/v1/usage", { key })), 0)
      const events = yield* eventsAbout("DE100440130")
      assert.containSubset(events, [
        {
          type: "ConfirmationRefused",
          units: 0,
          data: {
            target_vat_id: "DE100440130",
            requester_vat_id: "DE811115368",
            code: "evatr-0006",
            attempts: [{ source: "bzst", outcome: "refused", code: "evatr-0006" }]
          }
        }
      ])
      assert.strictEqual(events.length, 1)
      assert.containSubset((yield* service.ask("/v1/qualified-confirmations", { key })).body, { data: [] })
    }
  )

  it.effect.each(["evatr-0004", "evatr-2005"])(
    "is refused without Retry-After if the BZSt rejects the requester (%s)",
    function* (status) {
      const { key, service } = yield* start()
      for (let time = 0; time < 5; time += 1) {
        const reply = yield* confirm(service, bzstEnding(status), key)
        assert.include(
          assertProblem(reply, "QUALIFIED_CONFIRMATION_REFUSED").message,
          `${status}): the requester's German VAT ID`
        )
        assert.notProperty(reply.headers, "retry-after")
      }
      assert.strictEqual(usedOf(yield* service.ask("/v1/usage", { key })), 0)
      const [event] = yield* eventsAbout(bzstEnding(status))
      assert.containSubset(event, { type: "ConfirmationRefused", units: 0, data: { code: status } })
    }
  )

  it.effect(
    "fails with 503 and Retry-After during an outage of the BZSt; the fourth and later failures for a VAT ID within an hour are charged",
    function* () {
      const { key, service } = yield* start()
      const used: Array<number> = []
      for (let time = 0; time < 5; time += 1) {
        const reply = yield* confirm(service, bzstEnding("evatr-2003"), key)
        assert.include(assertProblem(reply, "SOURCE_UNAVAILABLE").message, "evatr-2003")
        assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/u)
        used.push(usedOf(yield* service.ask("/v1/usage", { key })))
      }
      assert.deepStrictEqual(used, [0, 0, 0, 1, 2])
      const [event] = yield* eventsAbout(bzstEnding("evatr-2003"))
      assert.containSubset(event, { type: "VatIdVerificationFailed", units: 0, data: { attempts: [{ code: "evatr-2003" }] } })
    }
  )

  it.effect("bypasses the answer cache and refreshes it on every replica", function* () {
    const { key, sandbox, service } = yield* start()
    assert.containSubset(yield* service.validate("DE100440150", { key }), { body: { source: "vies", cache: false } })
    assert.containSubset(yield* service.validate("DE100440150", { key }), { body: { source: "cache", cache: true } })
    const first = yield* confirm(service, "DE100440150", key)
    const second = yield* confirm(service, "DE100440150", key)
    assert.containSubset(first.body, { source: "bzst", cache: false })
    assert.strictEqual(yield* sandbox.checks({ source: "bzst", vatId: "DE100440150" }), 2)
    const time = /"source_timestamp":"[^"]+"/u.exec(second.text)?.[0] ?? ""
    const other = yield* RunningService.make()
    const cached = yield* other.validate("DE100440150", { key })
    assert.containSubset(cached.body, { source: "cache", cache: true, qualified_confirmation: null })
    assert.include(cached.text, time)
  })

  it.effect("is sent to the BZSt while VIES is down, and is not sent to VIES while the BZSt is down", function* () {
    const { key, sandbox, service } = yield* start()
    yield* sandbox.configure({ vies_available: false })
    assert.strictEqual((yield* confirm(service, "DE100440160", key)).status, 200)
    yield* sandbox.configure({ vies_available: true, bzst_available: false })
    assertProblem(yield* confirm(service, "DE100440160", key), "SOURCE_UNAVAILABLE")
    assert.strictEqual(yield* sandbox.checks({ source: "vies" }), 0)
  })

  it.effect(
    "is issued for all member states if QUALIFIED_CONFIRMATION_COUNTRIES is EU, and contains the names that VIES discloses",
    function* () {
      const { key, service } = yield* start(RunningService.otherSettings)
      const company = { company_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε.", company_city: "ΑΘΗΝΑ" }
      const official = Effect.fnUntraced(function* () {
        const { text } = yield* confirm(service, "GR100440170", key, company)
        const receipt = yield* service.ask(`/v1/qualified-confirmations/${/ACME-QC-[\dA-Z-]+/u.exec(text)?.[0]}`, { key })
        return receipt.body
      })
      const unknown = { target_vat_id: "EL100440170", result: { name_match: "match", official_name: "", official_address: "" } }
      assert.containSubset(yield* official(), unknown)
      yield* service.validate("EL100440170", { key, query: { force_live: "true" } })
      const known = { result: { official_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε.", official_address: "ΕΡΜΟΥ 1\n10563 ΑΘΗΝΑ" } }
      assert.containSubset(yield* official(), known)
      // The confirmation is now the newest answer. It has no names, so the cache keeps the names from VIES.
      assert.containSubset(yield* official(), known)
      assert.containSubset((yield* service.validate("EL100440170", { key })).body, {
        cache: true,
        company_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε."
      })
    }
  )

  it.effect("contains the operator's SERVICE_NAME and RECEIPT_PREFIX", function* () {
    const { key, service } = yield* start(RunningService.otherSettings)
    const { text } = yield* confirm(service, "DE100440180", key)
    assert.match(text, /"receipt_id":"ACME-QC-\d{8}-[A-Z0-9]{10}".*"source":"acme-vat-issued"/u)
  })
})

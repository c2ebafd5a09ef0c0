import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { viesTestNumbers } from "#infra/sandbox/MagicNumbers.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import { assert, layer } from "#test/support/Test.ts"

const Body = Schema.Record(Schema.String, Schema.Unknown)
type Fields = Readonly<Record<string, string>>

const post = Effect.fnUntraced(function* (path: string, fields: Fields) {
  const { viesBaseUrl } = yield* Sandbox.Sandbox
  const client = yield* HttpClient.HttpClient
  const request = HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${viesBaseUrl}${path}`), fields)
  const response = yield* client.execute(request)
  return { status: response.status, body: yield* Schema.decodeUnknownEffect(Body)(yield* response.json) }
})

const check = (countryCode: string, vatNumber: string, more: Fields = {}) =>
  post("/check-vat-number", { countryCode, vatNumber, ...more })

const checkId = (vatId: string, more: Fields = {}) => check(vatId.slice(0, 2), vatId.slice(2), more)

const requester = { requesterMemberStateCode: "DE", requesterNumber: "123456789" }

/** Returns an answer without its time and consultation number, which differ in each answer. */
const lasting = ({ requestDate: _, requestIdentifier: __, ...rest }: Readonly<Record<string, unknown>>) => rest

const error = (code: string) => ({ actionSucceed: false, errorWrappers: [{ error: code }] })

const noTrader = {
  traderName: "---",
  traderStreet: "---",
  traderPostalCode: "---",
  traderCity: "---",
  traderCompanyType: "---",
  traderNameMatch: "NOT_PROCESSED",
  traderStreetMatch: "NOT_PROCESSED",
  traderPostalCodeMatch: "NOT_PROCESSED",
  traderCityMatch: "NOT_PROCESSED",
  traderCompanyTypeMatch: "NOT_PROCESSED"
}

const cez = {
  countryCode: "CZ",
  vatNumber: "45274649",
  valid: true,
  name: "ČEZ, a. s.",
  address: "Duhová 1444/2\nPRAHA 4 - MICHLE\n140 00  PRAHA 4",
  ...noTrader
}

const services = Layer.mergeAll(Sandbox.layer({ host: "127.0.0.1", port: 0 }), NodeHttpClient.layerUndici)

layer(services, { excludeTestServices: true })("the simulated VIES", (it) => {
  it.effect("returns the recorded answer of the real VIES for Czechia", function* () {
    const { status, body } = yield* check("CZ", "45274649")
    assert.strictEqual(status, 200)
    assert.deepStrictEqual(lasting(body), cez)
    assert.match(String(body["requestDate"]), /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/u)
    assert.strictEqual(body["requestIdentifier"], "")
    const keys = "countryCode vatNumber requestDate valid requestIdentifier name address".split(" ")
    assert.deepStrictEqual(Object.keys(body), [...keys, ...Object.keys(noTrader)])
  })

  it.effect("returns a consultation number only if the requester and the target are valid", function* () {
    const good = yield* check("CZ", "45274649", requester)
    assert.match(String(good.body["requestIdentifier"]), /^WAPI[A-Za-z0-9]{12}$/u)
    assert.deepStrictEqual(lasting(good.body), cez)
    const again = yield* check("CZ", "45274649", requester)
    assert.notStrictEqual(again.body["requestIdentifier"], good.body["requestIdentifier"])
    const invalid = yield* check("CZ", "11111111", requester)
    assert.strictEqual(invalid.body["requestIdentifier"], "")
  })

  it.effect("returns the recorded answer of the real VIES for an invalid number", function* () {
    const { status, body } = yield* check("CZ", "11111111")
    assert.strictEqual(status, 200)
    const expected = { countryCode: "CZ", vatNumber: "11111111", valid: false, name: "---", address: "---", ...noTrader }
    assert.deepStrictEqual(lasting(body), expected)
  })

  it.effect("returns the recorded answer of the real VIES for Germany, without names", function* () {
    const { body } = yield* check("DE", "811115368")
    assert.deepStrictEqual(lasting(body), {
      countryCode: "DE",
      vatNumber: "811115368",
      valid: true,
      name: "---",
      address: "---",
      traderName: "---",
      traderNameMatch: "NOT_PROCESSED"
    })
  })

  it.effect("returns the sent company data with the results of its comparison for Spain, as VIES does", function* () {
    const recorded = {
      countryCode: "ES",
      vatNumber: "A15075062",
      valid: true,
      name: "---",
      address: "---",
      traderStreetMatch: "NOT_PROCESSED",
      traderPostalCodeMatch: "NOT_PROCESSED",
      traderCompanyTypeMatch: "NOT_PROCESSED"
    }
    const right = { traderName: "INDUSTRIA DE DISEÑO TEXTIL, S.A.", traderCity: "ARTEIXO" }
    const match = yield* check("ES", "A15075062", right)
    assert.deepStrictEqual(lasting(match.body), { ...recorded, ...right, traderNameMatch: "VALID", traderCityMatch: "VALID" })
    const wrong = { traderName: "EXAMPLE TRADING, S.L.", traderCity: "MADRID" }
    const mismatch = yield* check("ES", "A15075062", wrong)
    assert.deepStrictEqual(lasting(mismatch.body), {
      ...recorded,
      ...wrong,
      traderNameMatch: "INVALID",
      traderCityMatch: "INVALID"
    })
  })

  it.effect("compares the sent company data for France, as it does for Spain", function* () {
    const { body } = yield* check("FR", "40123456789", { traderName: "Sarl Exemple", traderPostalCode: "13001" })
    assert.strictEqual(body["traderNameMatch"], "VALID")
    assert.strictEqual(body["traderPostalCodeMatch"], "INVALID")
    assert.strictEqual(body["traderStreetMatch"], "NOT_PROCESSED")
    assert.strictEqual(body["traderStreet"], "---")
  })

  it.effect("returns a name and an address with a line break, except for Germany and Spain", function* () {
    for (const prefix of memberStates.keys()) {
      const { body } = yield* checkId(vatIdEnding(prefix, "123456"))
      assert.strictEqual(body["valid"], true, prefix)
      const discreet = prefix === "DE" || prefix === "ES"
      assert.strictEqual(body["name"] === "---", discreet, prefix)
      assert.strictEqual(String(body["address"]).includes("\n"), !discreet, prefix)
    }
  })

  it.effect(
    "rejects a requester without a country or number, with a prefix in its number, or with a malformed, invalid or unknown number",
    function* () {
      for (const wrong of [
        { requesterMemberStateCode: "DE", requesterNumber: "DE123456789" },
        { requesterMemberStateCode: "DE", requesterNumber: "12345678" },
        { requesterMemberStateCode: "DE" },
        { requesterNumber: "123456789" },
        { requesterMemberStateCode: "DE", requesterNumber: "111111111" },
        { requesterMemberStateCode: "DE", requesterNumber: "100999202" }
      ]) {
        const { status, body } = yield* check("CZ", "45274649", wrong)
        assert.strictEqual(status, 200)
        assert.deepStrictEqual(body, error("INVALID_REQUESTER_INFO"))
      }
    }
  )

  it.effect(
    "rejects a VAT number with a prefix, separators or too few digits, and a country code that is lower case, unknown or the ISO code of Greece",
    function* () {
      for (const [countryCode, vatNumber] of [
        ["DE", "DE123456789"],
        ["DE", "123 456 789"],
        ["de", "123456789"],
        ["DE", "12345678"],
        ["XX", "123456789"],
        ["GR", "123456789"]
      ] as const) {
        const { status, body } = yield* check(countryCode, vatNumber)
        assert.strictEqual(status, 200)
        assert.deepStrictEqual(body, error("INVALID_INPUT"))
      }
    }
  )

  it.effect("answers a missing mandatory field with HTTP 400 and VOW-ERR-11", function* () {
    for (const fields of [{ countryCode: "DE" }, { vatNumber: "123456789" }, { countryCode: "", vatNumber: "" }, {}]) {
      const { status, body } = yield* post("/check-vat-number", { ...fields })
      assert.strictEqual(status, 400)
      assert.deepStrictEqual(body, {
        actionSucceed: false,
        errorWrappers: [{ error: "VOW-ERR-11", message: "A mandatory field is missing" }]
      })
    }
  })

  it.effect("answers invalid JSON with HTTP 500 and VOW-ERR-1", function* () {
    const { viesBaseUrl } = yield* Sandbox.Sandbox
    const client = yield* HttpClient.HttpClient
    const request = HttpClientRequest.bodyText(HttpClientRequest.post(`${viesBaseUrl}/check-vat-number`), "{")
    const response = yield* client.execute(request)
    assert.strictEqual(response.status, 500)
    assert.include(yield* response.text, '"error":"VOW-ERR-1"')
  })

  it.effect("answers a VAT ID that ends with one of the 13 VIES test numbers as the test service of VIES does", function* () {
    for (const [number, code] of viesTestNumbers) {
      const { status, body } = yield* checkId(vatIdEnding("AT", `999${number}`), requester)
      assert.strictEqual(status, 200, number)
      if (code === "VALID" || code === "INVALID") assert.strictEqual(body["valid"], code === "VALID", number)
      else assert.deepStrictEqual(body, error(code), number)
    }
  })

  it.effect("rejects every requester for the magic number 999202, but answers a retry without a requester", function* () {
    const vatId = vatIdEnding("AT", "999202")
    assert.deepStrictEqual((yield* checkId(vatId, requester)).body, error("INVALID_REQUESTER_INFO"))
    assert.strictEqual((yield* checkId(vatId)).body["valid"], true)
  })

  it.effect("returns the data that docs/sandbox.md states for the magic numbers 999110 and 999111", function* () {
    const nothing = yield* checkId(vatIdEnding("AT", "999110"))
    assert.strictEqual(nothing.body["valid"], true)
    assert.deepStrictEqual([nothing.body["name"], nothing.body["address"]], ["---", "---"])
    const name = yield* checkId(vatIdEnding("AT", "999111"))
    assert.deepStrictEqual([name.body["name"], name.body["address"]], ["Donau Muster GmbH", "---"])
  })

  it.effect("returns for some magic numbers a name with umlauts, in Greek, of great length, or with HTML", function* () {
    const nameOf = (ending: string) => Effect.map(checkId(vatIdEnding("AT", ending)), ({ body }) => String(body["name"]))
    assert.match(yield* nameOf("999120"), /Süddeutsche .*Überwachungsgerätebau/u)
    assert.match(yield* nameOf("999121"), /^\p{Script=Greek}/u)
    assert.isAbove((yield* nameOf("999122")).length, 290)
    assert.match(yield* nameOf("999123"), /^=.*<b>"Test"<\/b>; 'GmbH'/u)
  })

  it.effect("reports the availability of VIES, of the 27 member states and of Northern Ireland", function* () {
    const sandbox = yield* Sandbox.Sandbox
    const client = yield* HttpClient.HttpClient
    const response = yield* client.get(`${sandbox.viesBaseUrl}/check-status`)
    const countries = [...memberStates.keys()].map((countryCode) => ({ countryCode, availability: "Available" }))
    assert.deepStrictEqual(yield* response.json, { vow: { available: true }, countries })
  })
})

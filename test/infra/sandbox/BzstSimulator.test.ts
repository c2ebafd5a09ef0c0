import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import { httpStatusOf, statusMessages } from "#infra/sandbox/StatusMessages.ts"
import { assert, layer } from "#test/support/Test.ts"

const Body = Schema.Record(Schema.String, Schema.Unknown)
type Fields = Readonly<Record<string, string>>

const query = Effect.fnUntraced(function* (fields: Fields) {
  const { bzstBaseUrl } = yield* Sandbox.Sandbox
  const client = yield* HttpClient.HttpClient
  const request = HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${bzstBaseUrl}/v1/abfrage`), fields)
  const response = yield* client.execute(request)
  return { status: response.status, body: yield* Schema.decodeUnknownEffect(Body)(yield* response.json) }
})

const ask = (angefragteUstid: string, more: Fields = {}) => query({ anfragendeUstid: "DE123456789", angefragteUstid, ...more })

const testPair = { firmenname: "Musterhaus GmbH & Co KG", strasse: "Musterstrasse 22", plz: "12345", ort: "musterort" }

const german = { firmenname: "Muster GmbH", strasse: "Musterstraße 1", plz: "10115", ort: "Berlin" }

const letters = (body: Readonly<Record<string, unknown>>) =>
  ["ergFirmenname", "ergStrasse", "ergPlz", "ergOrt"].map((key) => body[key] ?? "-").join("")

const services = Layer.mergeAll(Sandbox.layer({ host: "127.0.0.1", port: 0 }), NodeHttpClient.layerUndici)

layer(services, { excludeTestServices: true })("the simulated BZSt", (it) => {
  it.effect("confirms the pair of test VAT IDs that the BZSt publishes, in plain and in qualified queries", function* () {
    const plain = yield* ask("ATU12345678")
    assert.strictEqual(plain.status, 200)
    assert.deepStrictEqual(Object.keys(plain.body), ["id", "anfrageZeitpunkt", "status"])
    assert.strictEqual(plain.body["status"], "evatr-0000")
    const qualified = yield* ask("ATU12345678", testPair)
    assert.strictEqual(qualified.status, 200)
    assert.strictEqual(qualified.body["status"], "evatr-0000")
    assert.strictEqual(letters(qualified.body), "AAAA")
  })

  it.effect("returns an id of 16 hexadecimal digits, and the German local time with nanoseconds", function* () {
    const first = yield* ask("ATU12345678")
    const second = yield* ask("ATU12345678")
    assert.match(String(first.body["id"]), /^[0-9a-f]{16}$/u)
    assert.notStrictEqual(first.body["id"], second.body["id"])
    assert.match(String(first.body["anfrageZeitpunkt"]), /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{9}\+0[12]:00$/u)
  })

  it.effect("returns for each field A if it is equal, B if it is different, and C if it was not queried", function* () {
    const wrong = { firmenname: "Andere AG", strasse: "Nebenweg 9", plz: "99999", ort: "Hamburg" }
    assert.strictEqual(letters((yield* ask("DE100123456", german)).body), "AAAA")
    assert.strictEqual(letters((yield* ask("DE100123456", wrong)).body), "BBBB")
    assert.strictEqual(letters((yield* ask("DE100123456", { firmenname: "MUSTER GMBH", ort: "berlin" })).body), "ACCA")
    assert.strictEqual(letters((yield* ask("DE100123456", { ...german, strasse: "Musterstrasse 1", ort: "" })).body), "----")
    assert.strictEqual(letters((yield* ask("DE100123456", { ...german, strasse: "Musterstrasse 1", plz: "" })).body), "AACA")
  })

  it.effect("returns D for a field if the member state does not disclose it", function* () {
    assert.strictEqual(letters((yield* ask(vatIdEnding("FR", "999110"), german)).body), "DDDD")
    assert.strictEqual(letters((yield* ask(vatIdEnding("FR", "999110"), { ...german, plz: "" })).body), "DDCD")
    const french = { ...german, firmenname: "Sarl Exemple" }
    assert.strictEqual(letters((yield* ask(vatIdEnding("FR", "999111"), french)).body), "ADDD")
  })

  it.effect("answers a qualified query without name or city with evatr-0003 and HTTP 400, and compares nothing", function* () {
    for (const part of [{ firmenname: "Muster GmbH" }, { ort: "Berlin" }, { strasse: "Weg 1" }, { plz: "1", ort: "Berlin" }]) {
      const { status, body } = yield* ask("ATU12345678", part)
      assert.strictEqual(status, 400)
      assert.strictEqual(body["status"], "evatr-0003")
      assert.strictEqual(letters(body), "----")
    }
  })

  it.effect("answers with the status code in the last digits of the VAT ID, and with the HTTP status of that code", function* () {
    for (const { status } of statusMessages) {
      const target = vatIdEnding("AT", `99${status.slice(-4)}`)
      const { status: http, body } = yield* ask(target, testPair)
      assert.strictEqual(http, httpStatusOf(status), status)
      assert.strictEqual(body["status"], status)
      assert.isString(body["anfrageZeitpunkt"])
      assert.strictEqual(letters(body) !== "----", status === "evatr-0000", status)
      assert.strictEqual("gueltigAb" in body, status === "evatr-2002" || status === "evatr-2006", status)
      assert.strictEqual("gueltigBis" in body, status === "evatr-2006", status)
    }
  })

  it.effect("writes dates as YYYY-MM-DD, or as DD.MM.YYYY if the first digit of the VAT ID is odd", function* () {
    const even = yield* ask("DE200992006")
    assert.deepStrictEqual([even.body["gueltigAb"], even.body["gueltigBis"]], ["2010-01-01", "2020-12-31"])
    const odd = yield* ask("DE100992006")
    assert.deepStrictEqual([odd.body["gueltigAb"], odd.body["gueltigBis"]], ["01.01.2010", "31.12.2020"])
    assert.strictEqual((yield* ask("DE200992002")).body["gueltigAb"], "2099-01-01")
    assert.strictEqual((yield* ask("DE100992002")).body["gueltigAb"], "01.01.2099")
  })

  it.effect("rejects malformed queries", function* () {
    for (const [anfragendeUstid, angefragteUstid, code, status] of [
      ["DE12345678", "ATU12345678", "evatr-0004", 400],
      ["ATU12345678", "ATU12345678", "evatr-0004", 400],
      ["123456789", "ATU12345678", "evatr-0004", 400],
      ["DE100990004", "ATU12345678", "evatr-0004", 400],
      ["DE111111111", "ATU12345678", "evatr-2005", 404],
      ["DE100992001", "ATU12345678", "evatr-2005", 404],
      ["DE100992005", "ATU12345678", "evatr-2005", 404],
      ["DE123456789", "AT U12345678", "evatr-0005", 400],
      ["DE123456789", "12345678", "evatr-0005", 400],
      ["DE123456789", "GB123456789", "evatr-2003", 400],
      ["DE123456789", "ATU1234567", "evatr-0012", 400],
      ["DE123456789", "", "evatr-0002", 400],
      ["", "ATU12345678", "evatr-0002", 400],
      ["DE123456789", "AT11111111", "evatr-0012", 400],
      ["DE123456789", "CZ11111111", "evatr-2001", 404],
      ["DE100990006", "DE123456788", "evatr-0006", 403]
    ] as const) {
      const answer = yield* query({ anfragendeUstid, angefragteUstid })
      assert.deepStrictEqual([answer.body["status"], answer.status], [code, status])
    }
  })

  it.effect("answers invalid JSON with evatr-0007", function* () {
    const { bzstBaseUrl } = yield* Sandbox.Sandbox
    const client = yield* HttpClient.HttpClient
    const response = yield* client.execute(HttpClientRequest.bodyText(HttpClientRequest.post(`${bzstBaseUrl}/v1/abfrage`), "["))
    assert.strictEqual(response.status, 403)
    assert.include(yield* response.text, '"status":"evatr-0007"')
  })

  it.effect("rejects queries about German VAT IDs, and no other queries, if german_targets_admitted is false", function* () {
    const sandbox = yield* Sandbox.Sandbox
    yield* sandbox.configure({ german_targets_admitted: false })
    const refused = yield* ask("DE100123456", german)
    assert.deepStrictEqual([refused.body["status"], refused.status], ["evatr-0006", 403])
    assert.strictEqual((yield* ask("ATU12345678")).body["status"], "evatr-0000")
    yield* sandbox.reset
    assert.strictEqual((yield* ask("DE100123456")).body["status"], "evatr-0000")
  })

  it.effect("lists the member states and the 26 status messages", function* () {
    const { bzstBaseUrl } = yield* Sandbox.Sandbox
    const client = yield* HttpClient.HttpClient
    const State = Schema.Struct({ alpha2: Schema.String, name: Schema.String, verfuegbar: Schema.Literal(true) })
    const states = yield* (yield* client.get(`${bzstBaseUrl}/v1/info/eu_mitgliedstaaten`)).json
    const decoded = yield* Schema.decodeUnknownEffect(Schema.Array(State))(states)
    assert.deepStrictEqual(
      decoded.map(({ alpha2 }) => alpha2),
      [...memberStates.keys()].filter((prefix) => prefix !== "XI")
    )
    assert.include(
      decoded.map(({ name }) => name),
      "Österreich"
    )
    const messages = yield* (yield* client.get(`${bzstBaseUrl}/v1/info/statusmeldungen`)).json
    assert.strictEqual(JSON.stringify(messages), JSON.stringify(statusMessages))
    assert.strictEqual(statusMessages.length, 26)
  })
})

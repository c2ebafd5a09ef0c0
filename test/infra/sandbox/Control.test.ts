import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Clock, Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientRequest, type HttpMethod } from "effect/http"
import { magicNumbers } from "#infra/sandbox/MagicNumbers.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import { assert, layer } from "#test/support/Test.ts"

const control = Effect.fnUntraced(function* (method: HttpMethod.HttpMethod, path: string, body = "") {
  const { controlBaseUrl } = yield* Sandbox.Sandbox
  const client = yield* HttpClient.HttpClient
  const request = HttpClientRequest.make(method)(`${controlBaseUrl}${path}`)
  const response = yield* client.execute(body === "" ? request : HttpClientRequest.bodyText(request, body))
  return { status: response.status, allow: response.headers["allow"], text: yield* response.text }
})

/** Configures faults and fails the test if they are rejected. */
const put = Effect.fnUntraced(function* (faults: ReadonlyArray<object>, seed?: number) {
  const { status, text } = yield* control("PUT", "/faults", JSON.stringify(seed === undefined ? { faults } : { seed, faults }))
  assert.strictEqual(status, 200, text)
})

/** Asks the simulated VIES about a VAT ID. Returns the verdict, the error code or `HTTP n`. */
const vies = Effect.fnUntraced(function* (vatId: string) {
  const { viesBaseUrl } = yield* Sandbox.Sandbox
  const fields = { countryCode: vatId.slice(0, 2), vatNumber: vatId.slice(2) }
  return yield* wordOf(HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${viesBaseUrl}/check-vat-number`), fields))
})

const bzst = Effect.fnUntraced(function* (vatId: string) {
  const { bzstBaseUrl } = yield* Sandbox.Sandbox
  const fields = { anfragendeUstid: "DE123456789", angefragteUstid: vatId }
  return yield* wordOf(HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(`${bzstBaseUrl}/v1/abfrage`), fields))
})

const wordOf = Effect.fnUntraced(function* (request: HttpClientRequest.HttpClientRequest) {
  const client = yield* HttpClient.HttpClient
  const response = yield* client.execute(request)
  const text = yield* response.text
  return /"valid":(?:true|false)/u.exec(text)?.[0] ?? /"(?:error|status)":"([^"]+)"/u.exec(text)?.[1] ?? `HTTP ${response.status}`
})

const yes = '"valid":true'

const probes = Effect.gen(function* () {
  const { viesBaseUrl, bzstBaseUrl } = yield* Sandbox.Sandbox
  const client = yield* HttpClient.HttpClient
  const status = yield* client.get(`${viesBaseUrl}/check-status`)
  const info = yield* client.get(`${bzstBaseUrl}/v1/info/eu_mitgliedstaaten`)
  return { vies: { http: status.status, text: yield* status.text }, bzst: { http: info.status, text: yield* info.text } }
})

const services = Layer.mergeAll(Sandbox.layer({ host: "127.0.0.1", port: 0 }), NodeHttpClient.layerUndici)

layer(services, { excludeTestServices: true })("the sandbox's control endpoints", (it) => {
  it.effect("set an error code for all calls, a source, a member state or a VAT ID", function* () {
    yield* put([{ kind: "code", code: "TIMEOUT" }])
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* bzst("FR40123456789")], ["TIMEOUT", "evatr-0000"])
    yield* put([{ kind: "code", code: "MS_UNAVAILABLE", member_state: "FR" }])
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* vies("IT12345678901")], ["MS_UNAVAILABLE", yes])
    yield* put([{ kind: "code", code: "evatr-2007", vat_id: "gr 123 456 789" }])
    assert.deepStrictEqual([yield* bzst("EL123456789"), yield* bzst("EL123456780")], ["evatr-2007", "evatr-0000"])
    yield* put([{ kind: "http", http_status: 503 }])
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* bzst("FR40123456789")], ["HTTP 503", "HTTP 503"])
    yield* put([{ kind: "code", code: "INVALID", vat_id: "FR40123456789" }])
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* bzst("FR40123456789")], ['"valid":false', "evatr-0000"])
    yield* control("DELETE", "/faults")
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* bzst("FR40123456789")], [yes, "evatr-0000"])
  })

  it.effect("set a fault that overrides a magic number; the first matching fault applies", function* () {
    yield* put([
      { kind: "code", code: "VALID", vat_id: "DE100999300" },
      { kind: "code", code: "VAT_BLOCKED", member_state: "DE" }
    ])
    assert.deepStrictEqual([yield* vies("DE100999300"), yield* vies("DE123456789")], [yes, "VAT_BLOCKED"])
    yield* control("POST", "/reset")
  })

  it.effect("end a fault after its count of calls, and report how many calls matched", function* () {
    yield* put([{ kind: "code", code: "TIMEOUT", count: 2 }])
    const words = yield* Effect.all([vies("DE123456789"), probes, vies("DE123456789"), vies("DE123456789")])
    assert.deepStrictEqual([words[0], words[2], words[3]], ["TIMEOUT", "TIMEOUT", yes])
    const { text } = yield* control("GET", "/faults")
    assert.strictEqual(text, '{"faults":[{"kind":"code","code":"TIMEOUT","count":2,"matched":2}]}')
    yield* control("POST", "/reset")
  })

  it.effect("apply a fault with a probability to the same calls again if the seed is the same", function* () {
    const draws = Effect.fnUntraced(function* (seed: number) {
      yield* put([{ kind: "code", code: "TIMEOUT", probability: 0.5 }], seed)
      return (yield* Effect.replicateEffect(vies("DE123456789"), 40)).join(" ")
    })
    const first = yield* draws(7)
    assert.strictEqual(yield* draws(7), first)
    assert.notStrictEqual(yield* draws(8), first)
    const failures = first.split("TIMEOUT").length - 1
    assert.isTrue(failures > 8 && failures < 32, `${failures} of 40`)
    yield* put([{ kind: "code", code: "TIMEOUT", probability: 0 }])
    assert.strictEqual(yield* vies("DE123456789"), yes)
    yield* control("POST", "/reset")
  })

  it.effect("delay answers and failures by latency_ms", function* () {
    const timed = Effect.fnUntraced(function* (fault: object) {
      yield* put([fault])
      const begun = yield* Clock.currentTimeMillis
      const word = yield* vies("DE123456789")
      return { word, ms: (yield* Clock.currentTimeMillis) - begun }
    })
    const slow = yield* timed({ kind: "slow", latency_ms: 120 })
    assert.strictEqual(slow.word, yes)
    assert.isAtLeast(slow.ms, 119)
    const slowError = yield* timed({ kind: "code", code: "TIMEOUT", latency_ms: 120 })
    assert.strictEqual(slowError.word, "TIMEOUT")
    assert.isAtLeast(slowError.ms, 119)
    yield* control("POST", "/reset")
  })

  it.effect("apply a fault also to probes, unless the fault has a count or a member state", function* () {
    yield* put([
      { kind: "code", code: "SERVICE_UNAVAILABLE" },
      { kind: "code", code: "evatr-0011" }
    ])
    const outage = yield* probes
    assert.include(outage.vies.text, '"error":"SERVICE_UNAVAILABLE"')
    assert.deepStrictEqual([outage.bzst.http, outage.bzst.text.includes("evatr-0011")], [503, true])
    yield* put([
      { kind: "http", http_status: 500, member_state: "DE" },
      { kind: "http", http_status: 500, count: 1 }
    ])
    const partial = yield* probes
    assert.deepStrictEqual([partial.vies.http, partial.bzst.http], [200, 200])
    yield* put([{ kind: "http", http_status: 500, on: "probes" }])
    assert.deepStrictEqual([(yield* probes).vies.http, yield* vies("DE123456789")], [500, yes])
    yield* control("POST", "/reset")
  })

  it.effect("reject bad input with 400 and the reason", function* () {
    for (const [method, path, body, message] of [
      ["PUT", "/faults", "{", "Expected a valid JSON string"],
      ["PUT", "/faults", "[]", "Expected object"],
      ["PUT", "/faults", "{}", "faults: Missing key"],
      ["PUT", "/faults", '{"faults":[{"kind":"explode"}]}', 'faults.0.kind: Expected "code"'],
      ["PUT", "/faults", '{"faults":[{"kind":"hang","latency_ms":-1}]}', "faults.0.latency_ms: Expected a value between 0 and"],
      [
        "PUT",
        "/faults",
        '{"faults":[{"kind":"hang","probability":2}]}',
        "faults.0.probability: Expected a value between 0 and 1"
      ],
      ["PUT", "/faults", '{"faults":[{"kind":"hang","delay":1}]}', "faults.0.delay: Expected no excess property"],
      ["PUT", "/faults", '{"faults":[{"kind":"hang","member_state":"GR"}]}', "faults.0.member_state: Expected"],
      ["PUT", "/faults", '{"faults":[{"kind":"hang","vat_id":"DE1"}]}', "A VAT ID of Germany is DE followed by 9 digits"],
      ["PUT", "/faults", '{"faults":[{"kind":"code"}]}', 'kind "code" requires a code'],
      ["PUT", "/faults", '{"faults":[{"kind":"hang","code":"TIMEOUT"}]}', "no other kind takes one"],
      ["PUT", "/faults", '{"faults":[{"kind":"http"}]}', 'kind "http" requires an http_status'],
      ["PUT", "/faults", '{"faults":[{"kind":"slow"}]}', 'kind "slow" requires a latency_ms'],
      [
        "PUT",
        "/faults",
        '{"faults":[{"kind":"code","code":"TIMEOUT","source":"bzst"}]}',
        "TIMEOUT is not a code of the source bzst"
      ],
      ["PUT", "/faults", '{"faults":[{"kind":"hang","member_state":"DE","on":"probes"}]}', "omit `on`"],
      ["PATCH", "/settings", '{"latency_ms":"1"}', "latency_ms: Expected"],
      ["PATCH", "/settings", '{"latency":1}', "latency: Expected no excess property"]
    ] as const) {
      const { status, text } = yield* control(method, path, body)
      assert.strictEqual(status, 400, text)
      const { error } = yield* Schema.decodeUnknownEffect(ErrorBody)(text)
      assert.strictEqual(error.code, "VALIDATION_ERROR")
      assert.include(error.message, message)
    }
  })

  it.effect("change no fault when they reject a request", function* () {
    yield* put([{ kind: "code", code: "TIMEOUT" }])
    yield* control("PUT", "/faults", '{"faults":[{"kind":"hang"},{"kind":"explode"}]}')
    assert.strictEqual(yield* vies("DE123456789"), "TIMEOUT")
    yield* control("POST", "/reset")
  })

  it.effect("answer 404 and 405 with the available paths and methods", function* () {
    const missing = yield* control("GET", "/nothing")
    assert.deepStrictEqual([missing.status, missing.text.includes("GET /sandbox")], [404, true])
    const method = yield* control("PATCH", "/faults")
    assert.deepStrictEqual([method.status, method.allow], [405, "GET, PUT, DELETE"])
    const index = yield* control("GET", "")
    assert.include(index.text, '"POST /taxation_customs/vies/rest-api/check-vat-number"')
    assert.include(index.text, '"PUT /sandbox/faults"')
    const magic = yield* control("GET", "/magic-numbers")
    assert.strictEqual(magic.text.split('"ending"').length - 1, magicNumbers.size)
  })

  it.effect("make VIES or a member state unavailable, both for queries of VAT IDs and on the status page", function* () {
    yield* control("PATCH", "/settings", '{"vies_unavailable_member_states":["DE"]}')
    yield* control("PATCH", "/settings", '{"bzst_unavailable_member_states":["DE"]}')
    assert.deepStrictEqual([yield* vies("DE123456789"), yield* bzst("DE123456789")], ["MS_UNAVAILABLE", "evatr-0011"])
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* bzst("FR40123456789")], [yes, "evatr-0000"])
    const partial = yield* probes
    assert.include(partial.vies.text, '{"countryCode":"DE","availability":"Unavailable"}')
    assert.include(partial.vies.text, '{"countryCode":"FR","availability":"Available"}')
    assert.include(partial.bzst.text, '{"alpha2":"DE","name":"Deutschland","verfuegbar":false}')
    yield* control("PATCH", "/settings", '{"vies_available":false,"bzst_available":false}')
    assert.deepStrictEqual([yield* vies("FR40123456789"), yield* bzst("FR40123456789")], ["SERVICE_UNAVAILABLE", "evatr-0011"])
    const outage = yield* probes
    assert.include(outage.vies.text, '"vow":{"available":false}')
    assert.strictEqual(outage.bzst.http, 503)
    yield* control("POST", "/reset")
    assert.strictEqual(yield* vies("DE123456789"), yes)
  })
})

const ErrorBody = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) }))

/** Caching, conditional requests and compression of responses. */
import { Effect, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { brotliDecompressSync, gunzipSync } from "node:zlib"
import { confirm, newPaidKey } from "#test/support/PaidKey.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const decodeBatch = Schema.decodeUnknownEffect(Schema.Struct({ batch_id: Schema.String }))

/** Requests a path and returns the raw response bytes. */
const fetch = Effect.fnUntraced(function* (path: string, headers: Readonly<Record<string, string>> = {}) {
  const { baseUrl } = yield* RunningService.RunningService
  const response = yield* HttpClient.execute(HttpClientRequest.get(`${baseUrl}${path}`, { headers }))
  return { status: response.status, headers: response.headers, bytes: new Uint8Array(yield* response.arrayBuffer) }
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a response", (it) => {
  it.effect.each(["/openapi.json", "/docs", "/"])("to %s is a 304 if the client sends the current entity tag", function* (path) {
    const plain = yield* fetch(path)
    const { etag = "" } = plain.headers
    assert.match(etag, /^"[\da-f]{32}"$/u)
    assert.strictEqual(plain.headers["cache-control"], "private, max-age=3600")
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = yield* fetch(path, { "if-none-match": known })
      assert.deepStrictEqual([again.status, again.bytes.length, again.headers["etag"]], [304, 0, etag])
      assert.strictEqual(again.headers["cache-control"], plain.headers["cache-control"])
      assert.isDefined(again.headers["x-request-id"])
    }
    assert.strictEqual((yield* fetch(path, { "if-none-match": '"other"' })).status, 200)
  })

  it.effect(
    "is a 304 if an authorised client requests a receipt with the entity tag of the same format (JSON, HTML or PDF)",
    function* () {
      const client = yield* RunningService.RunningService
      const key = yield* newPaidKey(client)
      const { text } = yield* confirm(client, "DE100999120", key)
      const path = `/v1/qualified-confirmations/${/VP-QC-[\dA-Z-]+/u.exec(text)?.[0]}`
      const forms = ["application/json", "text/html", "application/pdf"]
      const tags = yield* Effect.forEach(forms, (accept) =>
        Effect.map(fetch(path, { accept, "x-api-key": key }), ({ headers }) => headers["etag"] ?? "")
      )
      assert.strictEqual(new Set(tags).size, 3)
      for (const [index, accept] of forms.entries()) {
        const known = { accept, "if-none-match": tags[index] ?? "" }
        const again = yield* fetch(path, { ...known, "x-api-key": key })
        assert.strictEqual(again.status, 304)
        assert.strictEqual(again.headers["cache-control"], "private, no-cache")
        assert.strictEqual((yield* fetch(path, known)).status, 401)
      }
    }
  )

  it.effect.each([
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync]
  ] as const)("with long text is compressed by %s if the client accepts it", function* ([coding, decompress]) {
    const plain = yield* fetch("/openapi.json")
    for (const _ of [1, 2]) {
      const { bytes, headers } = yield* fetch("/openapi.json", { "accept-encoding": `${coding}, identity;q=0.5` })
      assert.containSubset(headers, {
        "content-encoding": coding,
        "content-type": "application/json",
        "content-length": String(bytes.length),
        etag: `W/${plain.headers["etag"]}`,
        vary: "Accept-Encoding"
      })
      assert.isBelow(bytes.length, plain.bytes.length / 4)
      assert.deepStrictEqual(new Uint8Array(decompress(bytes)), plain.bytes)
    }
    assert.strictEqual(plain.headers["vary"], "Accept-Encoding")
  })

  it.effect.each([
    ["br", brotliDecompressSync, "text/csv"],
    ["gzip", gunzipSync, "application/x-ndjson"]
  ] as const)("that streams the results of a batch is compressed by %s", function* ([coding, decompress, accept]) {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const items = [{ custom_id: "a", vat_id: "nonsense" }]
    const headers = { accept, "x-api-key": key }
    const { body } = yield* service.post("/v1/batches", { items }, { key, headers: { prefer: "wait=20" } })
    const path = `/v1/batches/${yield* Effect.map(decodeBatch(body), ({ batch_id }) => batch_id)}/results`
    const plain = yield* fetch(path, headers)
    const { bytes, headers: received } = yield* fetch(path, { ...headers, "accept-encoding": coding })
    assert.containSubset(received, { "content-encoding": coding, vary: "Accept, Accept-Encoding" })
    assert.deepStrictEqual(new Uint8Array(decompress(bytes)), plain.bytes)
    assert.strictEqual(plain.headers["vary"], "Accept, Accept-Encoding")
  })

  it.effect("is not compressed if it is short or binary, or the client accepts no supported coding", function* () {
    const client = yield* RunningService.RunningService
    const key = yield* newPaidKey(client)
    const { text } = yield* confirm(client, "DE100999120", key)
    const path = `/v1/qualified-confirmations/${/VP-QC-[\dA-Z-]+/u.exec(text)?.[0]}`
    const asked = [
      ["/v1/validate/ATU12345678", { "accept-encoding": "br" }],
      ["/health", { "accept-encoding": "gzip" }],
      [path, { "accept-encoding": "br", accept: "application/pdf", "x-api-key": key }],
      ["/openapi.json", { "accept-encoding": "br;q=0, zstd" }]
    ] as const
    for (const [where, headers] of asked) {
      const reply = yield* fetch(where, headers)
      assert.strictEqual(reply.status, 200)
      assert.isUndefined(reply.headers["content-encoding"], where)
    }
  })

  it.effect(
    "has a Link header to the API documentation; a successful validation has no Link header and is not cacheable",
    function* () {
      const links = '</openapi.json>; rel="service-desc", </docs>; rel="service-doc"'
      const validation = yield* fetch("/v1/validate/ATU12345678")
      assert.containSubset(validation, { status: 200, headers: { "cache-control": "no-store" } })
      assert.isUndefined(validation.headers["etag"] ?? validation.headers["link"])
      for (const path of ["/health", "/v1/status", "/docs", "/nothing", "/v1/usage", "/v1/validate/nonsense"]) {
        assert.strictEqual((yield* fetch(path)).headers["link"], links, path)
      }
    }
  )
})

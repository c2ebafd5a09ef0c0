import { Effect } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { confirm, newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

/** Issues a receipt, and returns a function that reads it. */
const start = Effect.gen(function* () {
  const client = yield* RunningService.RunningService
  const key = yield* newPaidKey(client)
  const { text } = yield* confirm(client, "DE100999120", key)
  const path = `/v1/qualified-confirmations/${/VP-QC-[\dA-Z-]+/u.exec(text)?.[0]}`
  const ask = (headers: Readonly<Record<string, string>>) => client.ask(path, { key, headers })
  return { ask, client, key, path }
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a receipt", (it) => {
  it.effect("is returned as JSON by default", function* () {
    const { ask } = yield* start
    const plain = yield* ask({})
    for (const accept of [
      "*/*",
      "application/json",
      "application/*",
      "image/png",
      "text/html;q=0.5, application/json",
      "nonsense"
    ]) {
      const reply = yield* ask({ accept, "accept-language": "de" })
      assert.strictEqual(reply.status, 200)
      assert.strictEqual(reply.headers["content-type"], "application/json")
      assert.strictEqual(reply.text, plain.text)
    }
    assert.containSubset(plain.headers, { vary: "Accept, Accept-Language", "cache-control": "private, no-cache" })
  })

  it.effect("is returned to a browser as an HTML page in the reader's language", function* () {
    const { ask } = yield* start
    const german = yield* ask({ accept: browser, "accept-language": "de-AT,de;q=0.9,en;q=0.5" })
    assert.strictEqual(german.status, 200)
    assert.containSubset(german.headers, {
      "content-type": "text/html; charset=utf-8",
      "content-language": "de",
      vary: "Accept, Accept-Language, Accept-Encoding",
      "cache-control": "private, no-cache",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer"
    })
    assert.match(german.headers["content-security-policy"] ?? "", /^default-src 'none'; style-src 'sha256-/u)
    assert.isDefined(german.headers["x-request-id"])
    assert.include(german.text, '<html lang="de">')
    assert.include(german.text, "DE100999120 war gültig")
    for (const headers of [{ accept: "text/html" }, { accept: "text/html", "accept-language": "fr" }]) {
      const english = yield* ask(headers)
      assert.strictEqual(english.headers["content-language"], "en")
      assert.include(english.text, "DE100999120 was valid")
    }
  })

  it.effect("is returned as a PDF with the same bytes each time, on every replica", function* () {
    const { ask, client, key, path } = yield* start
    const http = yield* HttpClient.HttpClient
    const bytes = Effect.fnUntraced(function* (baseUrl: string) {
      const headers = { "x-api-key": key, accept: "application/pdf", "accept-language": "de" }
      const response = yield* http.execute(HttpClientRequest.get(`${baseUrl}${path}`, { headers }))
      return { headers: response.headers, body: new Uint8Array(yield* response.arrayBuffer) }
    })
    const first = yield* bytes(client.baseUrl)
    assert.strictEqual(new TextDecoder().decode(first.body.slice(0, 8)), "%PDF-1.7")
    assert.containSubset(first.headers, {
      "content-type": "application/pdf",
      "content-language": "de",
      "content-disposition": `inline; filename="${path.split("/").at(-1)}.pdf"`,
      vary: "Accept, Accept-Language"
    })
    const other = yield* RunningService.make()
    assert.deepStrictEqual((yield* bytes(other.baseUrl)).body, first.body)
    assert.strictEqual((yield* ask({ accept: "application/pdf, text/html;q=0.9" })).headers["content-type"], "application/pdf")
  })

  it.effect("is returned as a PDF to at most three concurrent requests of a key; further requests get 429", function* () {
    const { ask } = yield* start
    const asked = Array.from({ length: 5 }, () => ask({ accept: "application/pdf" }))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.deepStrictEqual(replies.map(({ status }) => status).toSorted(), [200, 200, 200, 429, 429])
    for (const reply of replies.filter(({ status }) => status === 429)) {
      assertProblem(reply, "RATE_LIMIT_EXCEEDED")
      assert.strictEqual(reply.headers["retry-after"], "5")
    }
  })

  it.effect("is refused with a JSON error to a caller with another API key or none, whatever the Accept header", function* () {
    const { client, path } = yield* start
    const other = yield* newPaidKey(client)
    for (const accept of [browser, "application/pdf"]) {
      assertProblem(yield* client.ask(path, { key: other, headers: { accept } }), "NOT_FOUND")
      assertProblem(yield* client.ask(path, { headers: { accept } }), "UNAUTHORIZED")
    }
  })
})

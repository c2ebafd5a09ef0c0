import { Effect } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const settings = { CONTACT: "help@vat.example", PUBLIC_URL: "https://vat.example/proof", ANONYMOUS_LIFETIME: "2" }

const pages = ["/", "/plans", "/status"]

/** Submits the form of the page at `/`. */
const submit = Effect.fnUntraced(function* (vatId: string, from: string, more: Readonly<Record<string, string>> = {}) {
  const { baseUrl } = yield* RunningService.RunningService
  const request = HttpClientRequest.post(`${baseUrl}/`).pipe(
    HttpClientRequest.bodyUrlParams({ vat_id: vatId }),
    HttpClientRequest.setHeaders({ "x-forwarded-for": from, accept: "text/html,application/xhtml+xml,*/*;q=0.8", ...more })
  )
  const response = yield* HttpClient.execute(request)
  return { status: response.status, headers: response.headers, text: yield* response.text }
})

layer(RunningService.layerShared(settings), { excludeTestServices: true })("the website", (it) => {
  it.effect.each(pages)("loads no external resources and no script on %s, and links to its other pages there", function* (path) {
    const { get } = yield* RunningService.RunningService
    const { headers, status, text } = yield* get(path)
    assert.strictEqual(status, 200)
    assert.strictEqual(headers["content-type"], "text/html; charset=utf-8")
    assert.match(headers["content-security-policy"] ?? "", /^default-src 'none'; style-src 'sha256-/u)
    assert.notMatch(text, /<script|<iframe|@import|url\(|\sstyle=|\son\w+=/u)
    for (const link of ["/proof/", "/proof/docs", "/proof/status", "/proof/plans"]) assert.include(text, `href="${link}"`)
    const targets = [...text.matchAll(/(?:src|href|action)="([^"]+)"/gu)].map(([, target = ""]) => target)
    for (const target of targets) assert.match(target, /^(?:\/proof\/|mailto:help@vat\.example$)/u)
  })

  it.effect("uses the path prefix of the proxy in the OpenAPI document and in the documentation", function* () {
    const { get } = yield* RunningService.RunningService
    assert.containSubset((yield* get("/openapi.json")).body, { servers: [{ url: "/proof" }] })
    assert.include((yield* get("/docs")).text, 'href="/proof/openapi.json"')
  })

  it.effect("validates a VAT ID on the page / without an API key, counts it, and reports a used-up quota", function* () {
    const first = yield* submit(" at u12345678", "203.0.113.1")
    assert.strictEqual(first.status, 200)
    assert.strictEqual(first.headers["x-service-usage"], "1/2")
    assert.strictEqual(first.headers["cache-control"], "no-store")
    assert.include(first.text, "ATU12345678 is valid")
    assert.include(first.text, "Musterhaus GmbH &amp; Co KG")
    const invalid = yield* submit(vatIdEnding("DE", "999200"), "203.0.113.1")
    assert.include(invalid.text, "is not valid")
    assert.notMatch(invalid.text, /<dt>Name<|not disclosed/u)
    const third = yield* submit("ATU12345678", "203.0.113.1")
    assert.strictEqual(third.status, 401)
    assert.include(third.text, "POST /v1/register")
  })

  it.effect("refuses the form of another site, which uses up no validation of the visitor", function* () {
    const from = "203.0.113.7"
    const foreign = yield* submit("ATU12345678", from, { "sec-fetch-site": "cross-site" })
    assert.strictEqual(foreign.status, 400)
    assert.include(foreign.text, "sent by a page of another site")
    const json = yield* submit("ATU12345678", from, { "sec-fetch-site": "cross-site", accept: "*/*" })
    assert.include(json.text, "VALIDATION_ERROR")
    const own = yield* submit("ATU12345678", from, { "sec-fetch-site": "same-origin" })
    assert.deepStrictEqual([own.status, own.headers["x-service-usage"]], [200, "1/2"])
  })

  it.effect(
    "reports on the page / that a VAT ID is malformed, and reports an outage as an outage, not as an invalid VAT ID",
    function* () {
      const wrong = yield* submit("<b>1", "203.0.113.2")
      assert.strictEqual(wrong.status, 400)
      assert.include(wrong.text, "&lt;b&gt;1 was not checked")
      const outage = yield* submit(vatIdEnding("DE", "999301"), "203.0.113.3")
      assert.strictEqual(outage.status, 503)
      assert.isDefined(outage.headers["retry-after"])
      assert.include(outage.text, "This says nothing about the VAT ID")
      assert.notInclude(outage.text, "not valid")
    }
  )

  it.effect("lists every plan and the operator's contact on /plans", function* () {
    const { get } = yield* RunningService.RunningService
    const { text } = yield* get("/plans")
    for (const plan of ["free", "starter", "business", "enterprise"]) assert.include(text, `<th scope="row">${plan}</th>`)
    assert.include(text, `<a href="mailto:help@vat.example">help@vat.example</a>`)
    const unknown = yield* RunningService.make()
    assert.include((yield* unknown.get("/plans")).text, "has published no address")
  })

  it.effect("shows the state of the sources on /status", function* () {
    const { get } = yield* RunningService.RunningService
    const { headers, text } = yield* get("/status")
    assert.strictEqual(headers["cache-control"], "no-store")
    assert.include(text, `<th scope="row">VIES</th>`)
    assert.include(text, `<td class="good">operational</td>`)
    assert.strictEqual(text.split('<svg class="days"').length - 1, 28)
  })

  it.effect("serves an icon, robots.txt and security.txt", function* () {
    const { get } = yield* RunningService.RunningService
    for (const path of ["/favicon.svg", "/favicon.ico"]) {
      assert.strictEqual((yield* get(path)).headers["content-type"], "image/svg+xml")
    }
    assert.match((yield* get("/robots.txt")).text, /^User-agent: \*\nDisallow: \/v1\/$/mu)
    const { headers, text } = yield* get("/.well-known/security.txt")
    assert.match(headers["content-type"] ?? "", /^text\/plain/u)
    assert.match(text, /^Contact: mailto:help@vat\.example$/mu)
    const [, expires = ""] = /^Expires: (.+)$/mu.exec(text) ?? []
    const days = (Date.parse(expires) - Date.now()) / 86_400_000
    assert.isTrue(days > 30 && days < 365, expires)
    const unknown = yield* RunningService.make()
    assert.strictEqual((yield* unknown.get("/.well-known/security.txt")).status, 404)
  })
})

import { Effect, Schema } from "effect"
import { command } from "#test/support/CommandLine.ts"
import { why } from "#test/support/Operations.ts"
import { confirm, newPaidKey, receiptIdOf, receiptsPath } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const publicUrl = "https://vat.example/proof"

const decodeLink = Schema.decodeUnknownEffect(
  Schema.Struct({ link_id: Schema.String, url: Schema.String, expires_at: Schema.DateTimeUtcFromString }),
  { onExcessProperty: "error" }
)

/** Default headers of a browser. */
const browser = {
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
  "accept-language": "de-DE,de;q=0.9,en;q=0.8"
}

const share = Effect.fnUntraced(function* (client: ServiceClient, receiptId: string, reader: Ask, body: unknown = {}) {
  const reply = yield* client.post(`${receiptsPath}/${receiptId}/links`, body, reader)
  assert.strictEqual(reply.status, 201, reply.text)
  const { expires_at: expiresAt, link_id: linkId, url } = yield* decodeLink(reply.body)
  assert.isTrue(url.startsWith(`${publicUrl}/v1/receipt-links/${receiptId}.${linkId}.`), url)
  return { expiresAt, linkId, path: url.slice(publicUrl.length) }
})

const issue = (client: ServiceClient, key: string) => Effect.flatMap(confirm(client, "DE100440900", key), receiptIdOf)

const started = Effect.gen(function* () {
  const client = yield* RunningService.RunningService
  const { email, token } = yield* People.newUser(client)
  const { id: keyId, key } = yield* People.issueKey(client, token)
  yield* RunningService.setPlan(key, "business")
  const receiptId = yield* issue(client, key)
  const open = (path: string, more: Ask = {}) => client.get(path, { headers: browser, ...more })
  return { access: People.bearing(token), client, email, key, keyId, open, receiptId }
})

const service = RunningService.layerShared({ PUBLIC_URL: publicUrl })

layer(service, { excludeTestServices: true })("a link to a receipt", (it) => {
  it.effect(
    "opens the page and the PDF of the receipt in a browser; headers exclude both from shared caches, referrers and search engines",
    function* () {
      const { client, key, open, receiptId } = yield* started
      const { path } = yield* share(client, receiptId, { key })
      const page = yield* open(path)
      assert.strictEqual(page.status, 200, page.text)
      assert.include(page.text, receiptId)
      assert.include(page.text, 'lang="de"')
      const pdfUrl = /<a href="(\?[^"]+)">PDF<\/a>/u.exec(page.text)?.[1]
      const pdf = yield* open(path + (pdfUrl ?? ""))
      assert.match(pdf.text, /^%PDF-/u)
      for (const { headers } of [page, pdf]) {
        assert.containSubset(headers, { "x-robots-tag": "noindex", "referrer-policy": "no-referrer" })
        assert.strictEqual(headers["cache-control"], "private, no-cache")
        assert.isUndefined(headers["x-service-usage"])
      }
      const again = yield* open(path, { headers: { ...browser, "if-none-match": page.headers["etag"] ?? "" } })
      assert.strictEqual(again.status, 304)
      // The page at the receipt's own path has no link to the PDF.
      const own = yield* client.get(`${receiptsPath}/${receiptId}`, { key, headers: browser })
      assert.notInclude(own.text, "?format=pdf")
    }
  )

  it.effect("can be created only with the receipt's API key or by its account", function* () {
    const { access, client, key, keyId, open, receiptId } = yield* started
    const { token: stranger } = yield* People.newUser(client)
    const other = yield* newPaidKey(client)
    const links = `${receiptsPath}/${receiptId}/links`
    assertProblem(yield* client.post(links, {}), "UNAUTHORIZED")
    for (const reader of [{ key: other }, People.bearing(stranger)]) {
      assertProblem(yield* client.post(links, {}, reader), "NOT_FOUND")
      assertProblem(yield* client.get(links, reader), "NOT_FOUND")
    }
    const byKey = yield* share(client, receiptId, { key })
    for (const reader of [{ key: other }, People.bearing(stranger)]) {
      const path = `${links}/${byKey.linkId}`
      assertProblem(yield* client.ask(path, { ...reader, method: "DELETE" }), "NOT_FOUND")
    }
    yield* client.ask(`/v1/auth/api-keys/${keyId}`, { ...access, method: "DELETE" })
    const byAccount = yield* share(client, receiptId, access)
    for (const { path } of [byKey, byAccount]) assert.strictEqual((yield* open(path)).status, 200)
    const listed = yield* client.get(links, access)
    assert.containSubset(listed.body, {
      data: [
        { link_id: byAccount.linkId, created_by: "account", revoked: false },
        { link_id: byKey.linkId, created_by: "key", revoked: false }
      ]
    })
    assert.notInclude(listed.text, byKey.path.split(".").at(-1) ?? "")
  })

  it.effect("returns 404 if any part of its URL is changed, for example to the id of another receipt", function* () {
    const { client, key, open, receiptId } = yield* started
    const { path } = yield* share(client, receiptId, { key })
    const another = yield* issue(client, key)
    const { path: others } = yield* share(client, another, { key })
    const token = path.split("/").at(-1) ?? ""
    const [, link = "", expiry = "", signature = ""] = token.split(".")
    const otherSignature = others.split(".").at(-1) ?? ""
    const flipped = signature.replace(/^./u, (digit) => (digit === "0" ? "1" : "0"))
    const tokens = [
      `${another}.${link}.${expiry}.${signature}`,
      `${receiptId}.${link}.${expiry}.${flipped}`,
      `${receiptId}.${link}.${expiry}.${otherSignature}`,
      `${receiptId}.${link}.zzzzzz.${signature}`,
      `${receiptId}.${link}.${expiry}.${signature.toUpperCase()}x`,
      `${receiptId}.${link}.${expiry}.`,
      `${receiptId}.${link}.${expiry}`,
      token.toLowerCase(),
      "x".repeat(2_000),
      "%00"
    ]
    for (const one of tokens) {
      assertProblem(yield* client.get(`/v1/receipt-links/${one}`), "NOT_FOUND")
      const page = yield* open(`/v1/receipt-links/${one}`)
      assert.strictEqual(page.status, 404)
      assert.include(page.text, "Dieser Link gilt nicht")
      assert.strictEqual(page.headers["x-robots-tag"], "noindex")
    }
    for (const url of [receiptsPath, `${receiptsPath}/${receiptId}`, `/v1/audit/proofs/${receiptId}`]) {
      assertProblem(yield* client.get(url, { headers: { authorization: `Bearer ${token}` } }), "UNAUTHORIZED")
    }
    assertProblem(yield* client.get(path, { query: { format: "xml" } }), "VALIDATION_ERROR")
  })

  it.effect("is invalid after it is revoked; revoking it again has no effect", function* () {
    const { access, client, key, open, receiptId } = yield* started
    const { linkId, path } = yield* share(client, receiptId, { key })
    const kept = yield* share(client, receiptId, { key })
    const links = `${receiptsPath}/${receiptId}/links`
    for (const reader of [{ key }, access]) {
      assert.strictEqual((yield* client.ask(`${links}/${linkId}`, { ...reader, method: "DELETE" })).status, 200)
      assertProblem(yield* client.get(path), "NOT_FOUND")
    }
    assertProblem(yield* client.ask(`${links}/x`, { key, method: "DELETE" }), "NOT_FOUND")
    const listed = yield* client.get(links, { key })
    assert.containSubset(listed.body, { data: [{ revoked: false }, { link_id: linkId, revoked: true }] })
    assert.strictEqual((yield* open(kept.path)).status, 200)
    const logged = yield* RunningService.everythingLogged
    assert.strictEqual([...logged.matchAll(/ReceiptLinkRevoked/gu)].length, 1)
    assert.include(logged, linkId)
    assert.notInclude(logged, path.split(".").at(-1) ?? "")
  })

  it.effect("is invalid after it is revoked, even if it is the last of all links of a receipt", function* () {
    const { client, key } = yield* started
    // The stream of this receipt begins with two events: its issue and the acceptance of its validation.
    const company = { name: "Muster GmbH", city: "Berlin" }
    const asked = { vat_id: "DE100440901", requester_vat_id: "DE811115368", company }
    const receiptId = yield* Effect.flatMap(client.post("/v1/validations", asked, { key }), receiptIdOf)
    const links = `${receiptsPath}/${receiptId}/links`
    const makeAndRevoke = Effect.gen(function* () {
      const { linkId, path } = yield* share(client, receiptId, { key })
      const revoked = yield* client.ask(`${links}/${linkId}`, { key, method: "DELETE" })
      assert.strictEqual(revoked.status, 200, revoked.text)
      return { linkId, path }
    })
    yield* Effect.repeat(makeAndRevoke, { times: 98 })
    const last = yield* makeAndRevoke
    assertProblem(yield* client.get(last.path), "NOT_FOUND")
    const listed = yield* client.get(links, { key })
    assert.notInclude(listed.text, '"revoked":false')
    assert.strictEqual((yield* client.ask(`${links}/${last.linkId}`, { key, method: "DELETE" })).status, 200)
    assert.strictEqual((yield* client.post(links, {}, { key })).status, 429)
  })

  it.effect("is invalid after its account is closed", function* () {
    const { client, email, key, open, receiptId } = yield* started
    const { path } = yield* share(client, receiptId, { key })
    assert.strictEqual((yield* open(path)).status, 200)
    yield* command("account", "close", email, ...why)
    assertProblem(yield* client.get(path), "NOT_FOUND")
  })

  it.effect("is not created if its receipt already has 20 valid links, even under concurrent requests", function* () {
    const { client, key, receiptId } = yield* started
    for (let made = 0; made < 18; made += 1) yield* share(client, receiptId, { key })
    const links = `${receiptsPath}/${receiptId}/links`
    const replies = yield* Effect.all(
      Array.from({ length: 4 }, () => client.post(links, {}, { key })),
      { concurrency: "unbounded" }
    )
    assert.deepStrictEqual(replies.map(({ status }) => status).toSorted(), [201, 201, 429, 429])
    const { body } = replies.find(({ status }) => status === 201) ?? assert.fail("no link was made")
    const { link_id } = yield* decodeLink(body)
    yield* client.ask(`${links}/${link_id}`, { key, method: "DELETE" })
    yield* share(client, receiptId, { key })
  })

  it.effect("is created or refused by each of 60 concurrent requests on two replicas", function* () {
    const { client, key, receiptId } = yield* started
    const other = yield* RunningService.make({ PUBLIC_URL: publicUrl })
    const links = `${receiptsPath}/${receiptId}/links`
    const replies = yield* Effect.all(
      Array.from({ length: 60 }, (_, index) => (index % 2 === 0 ? client : other).post(links, {}, { key })),
      { concurrency: "unbounded" }
    )
    const count = (status: number) => replies.filter((reply) => reply.status === status).length
    assert.deepStrictEqual([count(201), count(429)], [20, 40])
  })

  it.effect("ends with the API key of its receipt if it was created until then, and otherwise outlives the key", function* () {
    const { access, client, key, keyId, receiptId } = yield* started
    const links = `${receiptsPath}/${receiptId}/links`
    assertProblem(yield* client.post(links, { until: "never" }, { key }), "VALIDATION_ERROR")
    const usual = yield* share(client, receiptId, { key })
    const ending = yield* share(client, receiptId, { key }, { until: "key" })
    assert.containSubset((yield* client.get(links, { key })).body, { data: [{ link_id: ending.linkId, until: "key" }] })
    for (const { path } of [usual, ending]) assert.strictEqual((yield* client.get(path)).status, 200)
    yield* client.ask(`/v1/auth/api-keys/${keyId}`, { ...access, method: "DELETE" })
    assert.strictEqual((yield* client.get(usual.path)).status, 200)
    assertProblem(yield* client.get(ending.path), "NOT_FOUND")
  })

  it.effect(
    "returns 410 after the erasure of its receipt and shows only that the receipt was erased, until the link is revoked",
    function* () {
      const { client, key, open, receiptId } = yield* started
      const { linkId, path } = yield* share(client, receiptId, { key })
      yield* command("personal-data", "erase", receiptId, ...why)
      const json = yield* client.get(path)
      assert.strictEqual(json.status, 410)
      assert.containSubset(json.body, { error: { code: "RECEIPT_ERASED" } })
      const page = yield* open(path)
      assert.strictEqual(page.status, 410)
      assert.include(page.text, "Dieser Beleg wurde gelöscht")
      assert.notInclude(page.text, "Muster")
      const links = `${receiptsPath}/${receiptId}/links`
      assert.strictEqual((yield* client.post(links, {}, { key })).status, 410)
      assert.containSubset(yield* client.get(links, { key }), { status: 200, body: { data: [{ link_id: linkId }] } })
      assert.strictEqual((yield* client.ask(`${links}/${linkId}`, { key, method: "DELETE" })).status, 200)
      assertProblem(yield* client.get(path), "NOT_FOUND")
    }
  )

  it.effect("is valid for the requested number of days, 30 by default", function* () {
    const { client: replica, key, receiptId } = yield* started
    const links = `${receiptsPath}/${receiptId}/links`
    for (const expires_in_days of [0, -1, 366, 1.5, "7", null]) {
      assertProblem(yield* replica.post(links, { expires_in_days }, { key }), "VALIDATION_ERROR")
    }
    const short = yield* share(replica, receiptId, { key }, { expires_in_days: 1 })
    const usual = yield* share(replica, receiptId, { key })
    yield* replica.travel("23 hours")
    assert.strictEqual((yield* replica.get(short.path)).status, 200)
    yield* replica.travel("1 hour")
    assertProblem(yield* replica.get(short.path), "NOT_FOUND")
    yield* replica.travel("28 days")
    assert.strictEqual((yield* replica.get(usual.path)).status, 200)
    yield* replica.travel("1 day")
    assertProblem(yield* replica.get(usual.path), "NOT_FOUND")
  })
})

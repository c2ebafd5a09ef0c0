import { DateTime, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { fromEntropy } from "#domain/accounts/ApiKey.ts"
import { billingPeriod } from "#domain/callers/Usage.ts"
import { vatIdEnding } from "#infra/sandbox/MagicNumbers.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

/** A key with a valid checksum that was never issued. */
const unknownKey = fromEntropy(new Uint8Array(64).fill(7)) ?? ""

const statuses = (replies: ReadonlyArray<Reply>) => {
  const counts: Record<number, number> = {}
  for (const { status } of replies) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

const times = <A>(count: number, make: (index: number) => A) => Array.from({ length: count }, (_, index) => make(index))

layer(RunningService.layerShared(), { excludeTestServices: true })("an API key", (it) => {
  it.effect("that is wrong is rejected, and the call is not treated as anonymous", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    const mistyped = key.slice(0, -1) + (key.endsWith("0") ? "1" : "0")
    for (const wrong of [unknownKey, mistyped, "", "x", key.toLowerCase(), `${key},${key}`, "svc_live_", "Bearer x"]) {
      const reply = yield* validate("ATU12345678", { headers: { "x-api-key": wrong } })
      const { message } = assertProblem(reply, "UNAUTHORIZED")
      assert.include(message, "/v1/register")
      assert.isUndefined(reply.headers["x-service-usage"])
    }
  })

  it.effect.each([
    ["Authorization: Bearer <key>", { headers: { authorization: "Bearer svc_live_x" } }],
    ["Authorization: BEARER  <key>", { headers: { authorization: "BEARER  svc_live_x" } }],
    ["Authorization: <key>", { headers: { authorization: "svc_live_x" } }],
    ["Basic credentials", { headers: { authorization: `Basic ${Buffer.from("svc_live_x:").toString("base64")}` } }],
    ["?api_key=", { query: { api_key: "x" } }],
    ["?X-Api-Key=", { query: { "X-Api-Key": "x" } }],
    ["?key=<key>", { query: { force_live: "false", key: "svc_live_x" } }]
  ] as const)("sent as %s is rejected with a hint, and not counted", function* ([_, misplaced]) {
    const { ask, newKey } = yield* RunningService.RunningService
    for (const path of ["/v1/validate/ATU12345678", "/v1/validate/x", "/v1/usage", "/v1/qualified-confirmations"]) {
      const reply = yield* ask(path, misplaced)
      assert.include(assertProblem(reply, "UNAUTHORIZED").message, "Send the API key in the header X-Api-Key, not in the")
      assert.isUndefined(reply.headers["ratelimit"])
      assert.isUndefined(reply.headers["x-service-usage"])
    }
    assert.strictEqual((yield* ask("/v1/usage", { ...misplaced, key: yield* newKey })).status, 200)
  })

  it.effect("is not read from foreign credentials or parameters: the call is anonymous", function* () {
    const { ask, validate } = yield* RunningService.RunningService
    for (const authorization of ["Bearer eyJhbGciOiJI.eyJzdWIi.c2ln", "Basic dXNlcjpwYXNz"]) {
      assert.strictEqual((yield* validate("ATU12345678", { headers: { authorization } })).status, 200)
    }
    assert.strictEqual((yield* ask("/v1/validate/ATU12345678?utm_source=svc&keyword=api")).status, 200)
  })

  it.effect("that was revoked no longer works", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    assert.strictEqual((yield* validate("ATU12345678", { key })).status, 200)
    yield* sql`UPDATE vatproof.api_keys SET revoked_at = now() WHERE key_sha256 = sha256(${key}::text::bytea)`
    assertProblem(yield* validate("ATU12345678", { key }), "UNAUTHORIZED")
  })

  it.effect("works on every replica after its creation", function* () {
    const { newKey } = yield* RunningService.RunningService
    const second = yield* RunningService.make()
    assert.strictEqual((yield* second.validate("ATU12345678", { key: yield* newKey })).status, 200)
  })

  it.effect("is checked, and the minute counted, even if the path is malformed", function* () {
    const { ask, newKey } = yield* RunningService.RunningService
    const key = yield* newKey
    yield* RunningService.setPlan(key, "enterprise")
    const odd = "/v1/validate/%FF"
    assertProblem(yield* ask(odd, { key: unknownKey }), "UNAUTHORIZED")
    assertProblem(yield* ask("/v1/qualified-confirmations/%FF"), "UNAUTHORIZED")
    const refused = yield* ask(odd, { key })
    assertProblem(refused, "INVALID_VAT_ID")
    assert.isDefined(refused.headers["x-service-usage"])
    assertProblem(yield* ask(odd, { key }), "INVALID_VAT_ID")
    assertProblem(yield* ask(odd, { key }), "RATE_LIMIT_EXCEEDED")
  })

  it.effect("is checked first, then the minute, the format, the rules of confirmations, the quota", function* () {
    const settings = { PLAN_FREE_PER_MINUTE: "2", PLAN_FREE_PER_MONTH: "0", PLAN_STARTER_PER_MONTH: "0" }
    const { newKey, validate } = yield* RunningService.make(settings)
    const query = { company_name: "Muster GmbH" }
    const key = yield* newKey
    assertProblem(yield* validate("nonsense", { key: unknownKey, query }), "UNAUTHORIZED")
    assertProblem(yield* validate("nonsense", { key, query }), "INVALID_VAT_ID")
    assertProblem(yield* validate("ATU12345678", { key, query }), "PAYMENT_REQUIRED")
    assertProblem(yield* validate("nonsense", { key, query }), "RATE_LIMIT_EXCEEDED")
    const paid = yield* newKey
    yield* RunningService.setPlan(paid, "starter")
    assertProblem(yield* validate("ATU12345678", { key: paid, query }), "QUALIFIED_CONFIRMATION_UNSUPPORTED")
    assertProblem(yield* validate("DE123456789", { key: paid, query }), "INVALID_REQUESTER_VAT_ID")
    const asked = { ...query, requester_vat_id: "DE811115368" }
    assertProblem(yield* validate("DE123456789", { key: paid, query: asked }), "RATE_LIMIT_EXCEEDED")
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("the limit per minute", (it) => {
  it.effect("is 10 for an address without a key, including rejected calls", function* () {
    const { validate } = yield* RunningService.make(RunningService.ownLimits)
    const from = "203.0.113.1"
    const first = yield* validate("nonsense", { from })
    assertProblem(first, "INVALID_VAT_ID")
    assert.strictEqual(first.headers["ratelimit-policy"], '"minute";q=10;w=60')
    assert.match(first.headers["ratelimit"] ?? "", /^"minute";r=9;t=(?:59|60)$/u)
    for (const remaining of [8, 7, 6, 5, 4, 3, 2, 1, 0]) {
      const reply = yield* validate("ATU12345678", { from })
      assert.containSubset(reply, { status: 200 })
      assert.match(reply.headers["ratelimit"] ?? "", new RegExp(`^"minute";r=${remaining};t=\\d+$`, "u"))
    }
    const refused = yield* validate("ATU12345678", { from })
    assertProblem(refused, "RATE_LIMIT_EXCEEDED")
    const seconds = Number(refused.headers["retry-after"])
    assert.isTrue(seconds >= 1 && seconds <= 60, refused.headers["retry-after"])
    assert.match(refused.headers["ratelimit"] ?? "", /^"minute";r=0;t=\d+$/u)
    assert.strictEqual(refused.headers["x-service-usage"], "9/10")
    assert.containSubset(yield* validate("ATU12345678", { from: "203.0.113.2" }), { status: 200 })
  })

  it.effect("is the plan's for a key, from any address", function* () {
    const { newKey, validate } = yield* RunningService.make({ ...RunningService.ownLimits, PLAN_STARTER_PER_MINUTE: "12" })
    const key = yield* newKey
    const ask = (index: number) => validate("ATU12345678", { key, from: `203.0.113.${index}` })
    const replies = yield* Effect.forEach(
      times(12, (index) => index),
      ask
    )
    assert.deepStrictEqual(statuses(replies), { 200: 10, 429: 2 })
    const paid = yield* newKey
    yield* RunningService.setPlan(paid, "starter")
    const more = yield* Effect.forEach(
      times(14, (index) => index),
      () => validate("ATU12345678", { key: paid })
    )
    assert.deepStrictEqual(statuses(more), { 200: 12, 429: 2 })
  })

  it.effect("is exact over several replicas", function* () {
    const first = yield* RunningService.make(RunningService.ownLimits)
    const second = yield* RunningService.make(RunningService.ownLimits)
    const key = yield* first.newKey
    const asked = times(40, (index) => (index % 2 === 0 ? first : second).validate("ATU12345678", { key }))
    assert.deepStrictEqual(statuses(yield* Effect.all(asked, { concurrency: "unbounded" })), { 200: 10, 429: 30 })
  })

  const ask = (settings: RunningService.Settings, forwarded: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const { validate } = yield* RunningService.make({ ANONYMOUS_PER_MINUTE: "1", ...settings })
      return (yield* Effect.forEach(forwarded, (from) => validate("ATU12345678", { from }))).map(({ status }) => status)
    }).pipe(Effect.scoped)

  it.effect("treats an IPv6 network of 64 bits, and an address with its port, as one client", function* () {
    assert.deepStrictEqual(yield* ask({}, ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"]), [200, 429, 200])
    assert.deepStrictEqual(yield* ask({}, ["198.51.100.1", "::ffff:198.51.100.1", "198.51.100.2"]), [200, 429, 200])
    assert.deepStrictEqual(yield* ask({}, ["198.51.100.3:1234", "198.51.100.3:4321", "198.51.100.3"]), [200, 429, 429])
    assert.deepStrictEqual(yield* ask({}, ["[2001:db8:1:4::1]:80", "2001:db8:1:4::2"]), [200, 429])
  })

  it.effect("trusts as many proxies as TRUST_PROXY states, from the right", function* () {
    const chain = (client: string) => [`1.1.1.1, ${client}, 10.0.0.1`, `2.2.2.2, ${client}, 10.0.0.2`]
    assert.deepStrictEqual(yield* ask({ TRUST_PROXY: "2" }, chain("192.0.2.1")), [200, 429])
    assert.deepStrictEqual(yield* ask({}, chain("192.0.2.2")), [200, 200])
    assert.deepStrictEqual(yield* ask({ TRUST_PROXY: "0" }, ["192.0.2.3", "192.0.2.4"]), [200, 429])
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("the quota", (it) => {
  it.effect("of an address without a key is 10 in total; then the message says how to get a key", function* () {
    const { travel, validate } = yield* RunningService.make({ ...RunningService.ownLimits, ANONYMOUS_PER_MINUTE: "100" })
    const from = "203.0.113.20"
    for (const used of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
      const { headers, status } = yield* validate("ATU12345678", { from })
      assert.deepStrictEqual([status, headers["x-service-usage"]], [200, `${used}/10`])
      assert.strictEqual(headers["x-service-upgrade"] !== undefined, used > 8)
    }
    yield* travel("400 days")
    const refused = yield* validate("ATU12345678", { from })
    assert.include(assertProblem(refused, "UNAUTHORIZED").message, "POST /v1/register")
    assert.strictEqual(refused.headers["x-service-usage"], "10/10")
  })

  it.effect("of the free plan is monthly; then 402", function* () {
    const settings = { PLAN_FREE_PER_MONTH: "2", CONTACT: "help@vat.example" }
    const { baseUrl, newKey, travel, validate } = yield* RunningService.make(settings)
    const key = yield* newKey
    const other = yield* newKey
    yield* validate("ATU12345678", { key })
    yield* validate("ATU12345678", { key })
    const refused = yield* validate("ATU12345678", { key })
    const { message, plan } = assertProblem(refused, "PAYMENT_REQUIRED")
    assert.include(message, "/plans")
    const period = billingPeriod(yield* DateTime.now)
    assert.deepStrictEqual(plan, {
      plan: "free",
      limit: 2,
      resets_at: DateTime.formatIso(period.end),
      upgrade_url: `${baseUrl}/plans`,
      contact: "mailto:help@vat.example"
    })
    assert.containSubset(refused, { headers: { "x-service-usage": "2/2" } })
    assert.isDefined(refused.headers["x-service-upgrade"])
    assert.containSubset(yield* validate("ATU12345678", { key: other }), { status: 200 })
    yield* travel("31 days")
    assert.containSubset(yield* validate("ATU12345678", { key }), { status: 200, headers: { "x-service-usage": "1/2" } })
  })

  it.effect("of a paid plan is monthly; then 429 until the next month", function* () {
    const { newKey, travel, validate } = yield* RunningService.make()
    const key = yield* newKey
    yield* RunningService.setPlan(key, "business")
    yield* RunningService.setQuota(key, 1)
    yield* validate("ATU12345678", { key })
    const refused = yield* validate("ATU12345678", { key })
    assertProblem(refused, "RATE_LIMIT_EXCEEDED")
    const seconds = Number(refused.headers["retry-after"])
    assert.isTrue(seconds > 0 && seconds <= 31 * 24 * 3600, refused.headers["retry-after"])
    yield* travel({ seconds: seconds + 1 })
    assert.containSubset(yield* validate("ATU12345678", { key }), { status: 200 })
  })

  it.effect("is never exceeded, regardless of the number of replicas and callers", function* () {
    const replicas = [yield* RunningService.make(), yield* RunningService.make()] as const
    const key = yield* replicas[0].newKey
    yield* RunningService.setQuota(key, 10)
    const vatIds = times(40, (index) => vatIdEnding("SK", `4600${String(index).padStart(2, "0")}`))
    const asked = vatIds.map((vatId, index) => replicas[index % 2 === 0 ? 0 : 1].validate(vatId, { key }))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.deepStrictEqual(statuses(replies), { 200: 10, 402: 30 })
    for (const reply of replies) assert.match(reply.headers["x-service-usage"] ?? "", /^(?:\d|10)\/10$/u)
    assert.strictEqual((yield* replicas[0].validate("ATU12345678", { key })).headers["x-service-usage"], "10/10")
  })

  it.effect("does not change for requests that are rejected before a source is asked", function* () {
    const { newKey, validate } = yield* RunningService.make()
    const key = yield* newKey
    yield* RunningService.setQuota(key, 1)
    yield* validate("nonsense", { key })
    yield* validate("DE123456789", { key, query: { company_name: "x" } })
    yield* validate("DE123456789", { key, query: { force_live: "maybe" } })
    yield* validate("DE123456789", { key, query: { requester_vat_id: "x" } })
    assert.containSubset(yield* validate("ATU12345678", { key }), { status: 200, headers: { "x-service-usage": "1/1" } })
  })
})

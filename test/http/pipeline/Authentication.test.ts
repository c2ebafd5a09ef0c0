import { DateTime } from "effect"
import { fromEntropy } from "#domain/accounts/ApiKey.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

/** A key with a valid checksum that was never issued. */
const unknownKey = fromEntropy(new Uint8Array(64).fill(7)) ?? ""

layer(RunningService.layerShared(), { excludeTestServices: true })("an API key", (it) => {
  it.effect("is rejected if it is invalid, even by an endpoint that requires no API key", function* () {
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
  ] as const)(
    "is rejected and not counted if it is sent as %s, and the error names the header X-Api-Key",
    function* ([_, misplaced]) {
      const { ask, newKey } = yield* RunningService.RunningService
      for (const path of ["/v1/validate/ATU12345678", "/v1/validate/x", "/v1/usage", "/v1/qualified-confirmations"]) {
        const reply = yield* ask(path, misplaced)
        assert.include(assertProblem(reply, "UNAUTHORIZED").message, "Send the API key in the header X-Api-Key, not in the")
        assert.isUndefined(reply.headers["ratelimit"])
        assert.isUndefined(reply.headers["x-service-usage"])
      }
      assert.strictEqual((yield* ask("/v1/usage", { ...misplaced, key: yield* newKey })).status, 200)
    }
  )

  it.effect(
    "is not required for a validation; the validation ignores an Authorization header and unknown query parameters",
    function* () {
      const { ask, validate } = yield* RunningService.RunningService
      for (const authorization of ["Bearer eyJhbGciOiJI.eyJzdWIi.c2ln", "Basic dXNlcjpwYXNz"]) {
        assert.strictEqual((yield* validate("ATU12345678", { headers: { authorization } })).status, 200)
      }
      assert.strictEqual((yield* ask("/v1/validate/ATU12345678?utm_source=svc&keyword=api")).status, 200)
    }
  )

  it.effect("is checked and rate limited even if the path is malformed", function* () {
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
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("the limit per minute", (it) => {
  it.effect("is 10 for an IP address without an API key, and counts rejected calls too", function* () {
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
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("the monthly quota", (it) => {
  it.effect("of the free plan rejects further calls with 402 until the next month", function* () {
    const { newKey, travel, validate } = yield* RunningService.make(RunningService.otherSettings)
    const [key, other] = [yield* newKey, yield* newKey]
    yield* RunningService.setQuota(key, 2)
    yield* validate("ATU12345678", { key })
    yield* validate("ATU12345678", { key })
    const refused = yield* validate("ATU12345678", { key })
    const { message, plan } = assertProblem(refused, "PAYMENT_REQUIRED")
    assert.include(message, RunningService.otherSettings.UPGRADE_URL)
    const period = billingPeriod(yield* DateTime.now)
    assert.deepStrictEqual(plan, {
      plan: "free",
      limit: 2,
      resets_at: DateTime.formatIso(period.end),
      upgrade_url: RunningService.otherSettings.UPGRADE_URL,
      contact: "mailto:help@vat.example"
    })
    assert.containSubset(refused, { headers: { "x-service-usage": "2/2" } })
    assert.isDefined(refused.headers["x-service-upgrade"])
    assert.containSubset(yield* validate("ATU12345678", { key: other }), { status: 200 })
    yield* travel("31 days")
    assert.containSubset(yield* validate("ATU12345678", { key }), { status: 200, headers: { "x-service-usage": "1/2" } })
  })

  it.effect("of a paid plan rejects further calls with 429 until the next month", function* () {
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
})

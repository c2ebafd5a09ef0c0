/**
 * Validations beyond the rate limit or the quota, and the counts of calls on a replica with an outdated cache.
 */
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

/** Returns the number of calls of a key in the current minute. */
const countedOf = Effect.fnUntraced(function* (key: string) {
  return (yield* Rows.one(
    { taken: Schema.Int },
    (sql) => sql`SELECT coalesce(sum(taken), 0)::int AS taken FROM vatproof.rate_windows
      WHERE bucket = (SELECT 'minute/key-' || key_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea))`
  )).taken
})

const remainingOf = (reply: { readonly headers: Readonly<Record<string, string | undefined>> }) =>
  /r=(\d+)/u.exec(reply.headers["ratelimit"] ?? "")?.[1]

/** Creates a key that has just reached its rate limit. Returns it with its replica and the first refusal. */
const refusedCaller = Effect.gen(function* () {
  const replica = yield* RunningService.make()
  const key = yield* newPaidKey(replica, "enterprise")
  for (const remaining of ["1", "0"]) {
    const reply = yield* replica.validate("ATU12345678", { key })
    assert.deepStrictEqual([reply.status, remainingOf(reply)], [200, remaining])
  }
  const refused = yield* replica.validate("ATU12345678", { key })
  assertProblem(refused, "RATE_LIMIT_EXCEEDED")
  assert.strictEqual(yield* countedOf(key), 3)
  return { replica, key, refused }
})

/** Ends the current minute of all callers. */
const endMinute = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`UPDATE vatproof.rate_windows SET ends_at = clock_timestamp() - interval '1 second'`
)

const misspelled = { forcelive: "1" }

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a caller that has reached its rate limit", (it) => {
  it.effect("is rejected with the same response for every kind of validation, and each call is counted once", function* () {
    const { key, refused, replica } = yield* refusedCaller
    const without = ({ headers, text }: typeof refused) => ({
      text: text.replace(/"request_id":"[^"]*"/u, ""),
      names: Object.keys(headers).toSorted(),
      ...Object.fromEntries(["content-type", "ratelimit-policy", "x-service-usage"].map((name) => [name, headers[name]]))
    })
    const questions: ReadonlyArray<readonly [string, Ask]> = [
      ["ATU12345678", {}],
      ["ATU12345678", { query: { force_live: "1" } }],
      ["ATU12345679", {}],
      ["nonsense", {}],
      ["ATU12345678", { query: { force_live: "maybe" } }],
      ["ATU12345678", { query: misspelled }],
      ["ATU12345678", { query: { requester_vat_id: "x" } }],
      ["ATU12345678", { query: { company_name: "x" } }]
    ]
    for (const [index, [vatId, more]] of questions.entries()) {
      const reply = yield* replica.validate(vatId, { key, ...more })
      assertProblem(reply, "RATE_LIMIT_EXCEEDED")
      assert.deepStrictEqual(without(reply), without(refused))
      assert.strictEqual(yield* countedOf(key), 4 + index)
    }
    assert.strictEqual(refused.headers["content-length"], String(refused.text.length))
    assert.strictEqual(refused.headers["retry-after"], /t=(\d+)/u.exec(refused.headers["ratelimit"] ?? "")?.[1])
  })

  it.effect("is served at once after an upgrade of its plan", function* () {
    const { key, replica } = yield* refusedCaller
    yield* RunningService.setPlan(key, "business")
    assert.strictEqual((yield* replica.validate("ATU12345678", { key })).status, 200)
    assert.strictEqual(yield* countedOf(key), 4)
  })

  it.effect("is served and counted once in the next minute, even if the cache has a newer answer by then", function* () {
    const { key, replica } = yield* refusedCaller
    const other = yield* RunningService.make()
    yield* other.validate("ATU12345678", { query: { force_live: "1" } })
    yield* endMinute
    const reply = yield* replica.validate("ATU12345678", { key })
    assert.deepStrictEqual([reply.status, remainingOf(reply)], [200, "1"])
    assert.strictEqual(yield* countedOf(key), 1)
  })

  it.effect("is served and counted once in the next minute, even if the plan of another account changed meanwhile", function* () {
    const { key, replica } = yield* refusedCaller
    yield* RunningService.setPlan(yield* replica.newKey, "business")
    yield* endMinute
    const reply = yield* replica.validate("ATU12345678", { key })
    assert.deepStrictEqual([reply.status, remainingOf(reply), reply.headers["x-service-usage"]], [200, "1", "3/100000"])
    assert.strictEqual(yield* countedOf(key), 1)
  })

  it.effect("is rejected with 401 permanently if it has no API key and has used up its lifetime quota", function* () {
    const { travel, validate } = yield* RunningService.make(RunningService.ownLimits)
    const from = "203.0.113.40"
    for (let call = 0; call < 10; call += 1) assert.strictEqual((yield* validate("ATU12345678", { from })).status, 200)
    for (const vatId of ["ATU12345678", "nonsense", vatIdEnding("AT", "412001")]) {
      const reply = yield* validate(vatId, { from })
      assert.include(assertProblem(reply, "UNAUTHORIZED").message, "POST /v1/register")
      assert.strictEqual(reply.headers["x-service-usage"], "10/10")
    }
    assert.strictEqual((yield* validate("ATU12345678", { from: "203.0.113.41" })).status, 200)
    yield* travel("400 days")
    assertProblem(yield* validate("ATU12345678", { from }), "UNAUTHORIZED")
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a caller with a used-up quota", (it) => {
  it.effect("is rejected on every replica, and served at once after an upgrade of its plan", function* () {
    const [one, other] = [yield* RunningService.make(), yield* RunningService.make()]
    const key = yield* newPaidKey(one, "starter")
    assert.strictEqual((yield* other.validate("ATU12345678", { key })).status, 200)
    for (const replica of [one, one, other]) {
      const refused = yield* replica.validate("ATU12345678", { key })
      assertProblem(refused, "RATE_LIMIT_EXCEEDED")
      assert.strictEqual(refused.headers["x-service-usage"], "1/1")
    }
    assert.strictEqual(yield* countedOf(key), 4)
    yield* RunningService.setPlan(key, "business")
    for (const [index, replica] of [one, other, one].entries()) {
      const reply = yield* replica.validate("ATU12345678", { key })
      assert.deepStrictEqual([reply.status, reply.headers["x-service-usage"]], [200, `${2 + index}/1000000`])
    }
    assert.strictEqual(yield* countedOf(key), 7)
  })

  it.effect(
    "is rejected, and each rejected call counts once towards its rate limit, for cached and for new VAT IDs",
    function* () {
      const { newKey, validate } = yield* RunningService.make()
      const [key, other] = [yield* newKey, yield* newKey]
      yield* RunningService.setQuota(key, 1)
      yield* validate("ATU12345678", { key })
      for (const vatId of ["ATU12345678", vatIdEnding("AT", "412002"), "ATU12345678"]) {
        yield* RunningService.setPlan(other, "business")
        const before = yield* countedOf(key)
        assertProblem(yield* validate(vatId, { key }), "PAYMENT_REQUIRED")
        assert.strictEqual(yield* countedOf(key), before + 1)
      }
    }
  )
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a replica with outdated cached data of a caller", (it) => {
  it.effect.each([
    ["a cached answer", "ATU12345678", {}, 200],
    ["a live look-up", "ATU12345678", { query: { force_live: "1" } }, 200],
    ["an outage", vatIdEnding("AT", "999300"), {}, 503],
    ["a malformed VAT ID", "nonsense", {}, 400],
    ["a malformed parameter", "ATU12345678", { query: { force_live: "maybe" } }, 400],
    ["a misspelled parameter", "ATU12345678", { query: misspelled }, 400],
    ["a confirmation that needs a paid plan", "DE123456789", { query: { company_name: "x" } }, 402]
  ] as const)("counts a request with %s once", function* ([_, vatId, more, status]) {
    const { newKey, validate } = yield* RunningService.RunningService
    const [key, other] = [yield* newKey, yield* newKey]
    yield* validate("ATU12345678", { key })
    for (const plan of ["business", "free"] as const) {
      yield* RunningService.setPlan(other, plan)
      const before = yield* countedOf(key)
      assert.strictEqual((yield* validate(vatId, { key, ...more })).status, status)
      assert.strictEqual(yield* countedOf(key), before + 1)
    }
  })
})

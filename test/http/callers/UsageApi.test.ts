import { DateTime, Effect } from "effect"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { newPaidKey } from "#test/support/PaidKey.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/usage"

/** A VAT ID for which the sandbox simulates an outage of VIES. */
const outage = vatIdEnding("AT", "999300")

layer(RunningService.layerShared(), { excludeTestServices: true })("GET /v1/usage", (it) => {
  it.effect("returns the plan, the period and the usage of the period", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    yield* RunningService.setQuota(key, 5)
    yield* service.validate("ATU12345678", { key })
    const reply = yield* service.get(path, { key })
    const start = DateTime.startOf(yield* DateTime.now, "month")
    assert.deepStrictEqual(reply.body, {
      plan: "free",
      period: { start: DateTime.formatIso(start), end: DateTime.formatIso(DateTime.add(start, { months: 1 })) },
      requests: { used: 1, remaining: 4, limit: 5 }
    })
    assert.containSubset(reply, { status: 200, headers: { "x-service-usage": "1/5" } })
    assert.isUndefined(reply.headers["x-service-upgrade"])
    assert.isUndefined(reply.headers["ratelimit"])
  })

  it.effect("requires an API key", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    const anonymous = yield* service.get(path)
    assert.include(assertProblem(anonymous, "UNAUTHORIZED").message, "API key")
    assert.isUndefined(anonymous.headers["x-service-usage"])
    for (const more of [{ key: "" }, { key: "svc_live_x" }, People.bearing(token)]) {
      assertProblem(yield* service.get(path, more), "UNAUTHORIZED")
    }
  })

  it.effect("is not counted as a call, and succeeds even if the key has used up its quota and its rate limit", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service, "enterprise")
    yield* RunningService.setQuota(key, 1)
    const statuses = yield* Effect.forEach([1, 2, 3], () =>
      Effect.map(service.validate("ATU12345678", { key }), ({ status }) => status)
    )
    assert.deepStrictEqual(statuses, [200, 429, 429])
    for (const _ of [1, 2, 3]) {
      const reply = yield* service.get(path, { key })
      assert.containSubset(reply.body, { requests: { used: 1, remaining: 0, limit: 1 } })
      assert.isDefined(reply.headers["x-service-upgrade"])
    }
  })

  it.effect("reports a usage of zero at the beginning of a month", function* () {
    const service = yield* RunningService.make()
    const key = yield* service.newKey
    yield* service.validate("ATU12345678", { key })
    const now = yield* DateTime.now
    const end = DateTime.add(DateTime.startOf(now, "month"), { months: 1 })
    const left = DateTime.toEpochMillis(end) - DateTime.toEpochMillis(now)
    yield* service.travel(left - 30_000)
    assert.containSubset((yield* service.get(path, { key })).body, {
      period: { end: DateTime.formatIso(end) },
      requests: { used: 1 }
    })
    yield* service.travel(30_000)
    const { body } = yield* service.get(path, { key })
    assert.containSubset(body, { period: { start: DateTime.formatIso(end) }, requests: { used: 0, remaining: 100_000 } })
  })

  it.effect("counts validations per key, even if several keys belong to one account", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    const [first, second] = [yield* People.issueKey(service, token), yield* People.issueKey(service, token)]
    yield* service.validate("ATU12345678", { key: first.key })
    yield* service.validate("ATU12345678", { key: first.key })
    assert.containSubset((yield* service.get(path, { key: first.key })).body, { requests: { used: 2 } })
    assert.containSubset((yield* service.get(path, { key: second.key })).body, { requests: { used: 0 } })
  })

  it.effect("returns a remaining quota of at least zero, even after a downgrade of the plan", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    for (const _ of [1, 2, 3]) yield* service.validate("ATU12345678", { key })
    yield* RunningService.setPlan(key, "starter")
    const reply = yield* service.get(path, { key })
    assert.containSubset(reply.body, { plan: "starter", requests: { used: 3, remaining: 0, limit: 1 } })
    assert.containSubset(reply.headers, { "x-service-usage": "3/1" })
  })

  it.effect(
    "returns the same usage headers as the preceding validation, whether that validation succeeded or failed",
    function* () {
      const service = yield* RunningService.RunningService
      const key = yield* service.newKey
      yield* RunningService.setQuota(key, 10)
      const ask = Effect.fnUntraced(function* (vatId: string) {
        const { headers, status } = yield* service.validate(vatId, { key })
        const usage = yield* service.get(path, { key })
        assert.strictEqual(headers["x-service-usage"], usage.headers["x-service-usage"], vatId)
        assert.strictEqual(headers["x-service-upgrade"], usage.headers["x-service-upgrade"])
        return [status, headers["x-service-usage"], headers["x-service-upgrade"] !== undefined]
      })
      assert.deepStrictEqual(yield* ask("nonsense"), [400, "0/10", false])
      for (const _ of [1, 2, 3]) assert.deepStrictEqual(yield* ask(outage), [503, "0/10", false])
      for (const used of [1, 2]) assert.deepStrictEqual(yield* ask(outage), [503, `${used}/10`, false])
      for (const used of [3, 4, 5, 6, 7, 8]) assert.deepStrictEqual(yield* ask("ATU12345678"), [200, `${used}/10`, false])
      for (const used of [9, 10]) assert.deepStrictEqual(yield* ask("ATU12345678"), [200, `${used}/10`, true])
      assert.deepStrictEqual(yield* ask("ATU12345678"), [402, "10/10", true])
      assert.deepStrictEqual(yield* ask(outage), [402, "10/10", true])
    }
  )
})

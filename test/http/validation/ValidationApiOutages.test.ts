import { Effect, Fiber } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { recovered } from "#test/support/Outages.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const staleWarning = '110 - "Response is Stale"'

/** Waits until the service has recovered from the outage of the previous test, and takes down VIES, both sources or none. */
const takeDown = Effect.fnUntraced(function* (down: "vies" | "both" | "none") {
  const sandbox = yield* Sandbox
  yield* sandbox.reset
  const service = yield* RunningService.RunningService
  yield* recovered(service)
  yield* sandbox.configure({ vies_available: down === "none", bzst_available: down !== "both" })
  return { ...service, sandbox, key: yield* service.newKey }
})

const usedOf = (usage: string | undefined) => Number(usage?.split("/")[0])

layer(RunningService.layer(), { excludeTestServices: true })("the service", (it) => {
  it.effect("asks the BZSt about a German VAT ID while VIES is down, and caches its answer", function* () {
    const { key, validate } = yield* takeDown("vies")
    assert.containSubset(yield* validate("DE100440001", { key }), {
      status: 200,
      body: { valid: true, source: "bzst", cache: false, company_name: null, consultation_number: null }
    })
    assert.containSubset(yield* validate("DE100440001", { key }), { status: 200, body: { valid: true, source: "cache" } })
    assert.containSubset(yield* validate("DE111111111", { key }), { status: 200, body: { valid: false, source: "bzst" } })
  })

  it.effect(
    "sends the BZSt the caller's requester_vat_id, or the operator's VAT ID if the caller supplies no requester_vat_id",
    function* () {
      const { key, sandbox, validate } = yield* takeDown("vies")
      yield* validate("DE100440002", { key, query: { requester_vat_id: "DE811115368" } })
      yield* validate("DE100440003", { key })
      const { entries } = yield* sandbox.journal({ source: "bzst" })
      assert.deepStrictEqual(
        entries
          .filter(({ vat_id }) => vat_id === "DE100440002" || vat_id === "DE100440003")
          .map(({ requester, vat_id }) => [vat_id, requester]),
        [
          ["DE100440002", "DE811115368"],
          ["DE100440003", "DE123456789"]
        ]
      )
    }
  )

  it.effect(
    "returns 503 and charges nothing while VIES is down if the caller has no API key, or the VAT ID is not German",
    function* () {
      const { key, sandbox, validate } = yield* takeDown("vies")
      const asked = yield* sandbox.checks({ source: "bzst" })
      for (const reply of [yield* validate("DE100440005"), yield* validate("ATU10440006", { key })]) {
        const { message } = assertProblem(reply, "SOURCE_UNAVAILABLE")
        assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/u)
        assert.match(message, /says nothing about the VAT ID/u)
        assert.strictEqual(usedOf(reply.headers["x-service-usage"]), 0)
      }
      assert.strictEqual(yield* sandbox.checks({ source: "bzst" }), asked)
    }
  )

  it.effect(
    "responds within the deadline while VIES does not respond, either with an answer of the BZSt or with 503",
    function* () {
      const { key, sandbox, travel, validate } = yield* takeDown("none")
      yield* sandbox.script([{ kind: "hang", source: "vies" }])
      const asked = [validate("DE100446001", { key }), validate("ATU10446002", { key })] as const
      const replies = yield* Effect.forkChild(Effect.all(asked, { concurrency: "unbounded" }))
      yield* sandbox.until(({ vies }) => vies.in_flight === 2)
      yield* travel("21 seconds")
      const [german, austrian] = yield* Fiber.join(replies)
      assert.containSubset(german, { status: 200, body: { valid: true, source: "bzst" } })
      assertProblem(austrian, "SOURCE_UNAVAILABLE")
    }
  )

  it.effect(
    "charges the fourth and each later failed validation of one VAT ID within an hour while both sources are down",
    function* () {
      const { key, validate } = yield* takeDown("both")
      const used = Effect.fnUntraced(function* (vatId: string) {
        const reply = yield* validate(vatId, { key })
        assertProblem(reply, "SOURCE_UNAVAILABLE")
        return usedOf(reply.headers["x-service-usage"])
      })
      const counts = yield* Effect.forEach([1, 2, 3, 4, 5], () => used("DE100450001"))
      assert.deepStrictEqual(counts, [0, 0, 0, 1, 2])
      assert.strictEqual(yield* used("DE100450002"), 2)
    }
  )

  it.effect(
    "asks the BZSt about German VAT IDs while VIES cannot reach Germany's register, and asks VIES about all other VAT IDs",
    function* () {
      const { get, key, sandbox, travel, validate } = yield* takeDown("none")
      yield* sandbox.configure({ vies_unavailable_member_states: ["DE"] })
      for (const index of [1, 2, 3, 4]) {
        const reply = yield* validate(vatIdEnding("DE", `44500${index}`), { key })
        assert.containSubset(reply, { status: 200, body: { source: "bzst" } })
        assert.containSubset(yield* validate(vatIdEnding("AT", `44500${index}`), { key }), { body: { source: "vies" } })
      }
      assert.containSubset(yield* get("/v1/status"), {
        body: { status: "operational", active_source: "bzst", failover_active: true }
      })
      const asked = yield* sandbox.checks({ source: "vies" })
      yield* validate(vatIdEnding("DE", "445010"), { key })
      assert.strictEqual(yield* sandbox.checks({ source: "vies" }), asked)
      // After 20 seconds the next German VAT ID would be sent to VIES again.
      yield* travel("20 seconds")
      assert.containSubset(yield* get("/v1/status"), { body: { active_source: "vies", failover_active: false } })
    }
  )
})

layer(RunningService.layer(RunningService.otherSettings), { excludeTestServices: true })("the service", (it) => {
  it.effect("names the missing requester in the error if it cannot call the BZSt without a requester", function* () {
    const { key, sandbox, validate } = yield* takeDown("vies")
    const { message } = assertProblem(yield* validate("DE100440004", { key }), "SOURCE_UNAVAILABLE")
    assert.include(message, "requester_vat_id")
    assert.strictEqual(yield* sandbox.checks({ source: "bzst" }), 0)
    const reply = yield* validate("DE100440004", { key, query: { requester_vat_id: "DE811115368" } })
    assert.containSubset(reply, { status: 200, body: { source: "bzst" } })
  })

  it.effect(
    "serves a stale answer with a warning and a charge during an outage, until the answer is older than STALE_MAX_AGE",
    function* () {
      const { key, sandbox, travel, validate } = yield* takeDown("none")
      yield* validate("ATU10440007", { key })
      for (const reply of [
        yield* validate("ATU10440007", { key }),
        yield* validate("ATU10440007", { key, query: { max_age: "0" } })
      ])
        assert.notProperty(reply.body, "stale")
      yield* sandbox.configure({ vies_available: false })
      yield* travel("25 hours")
      const stale = yield* validate("ATU10440007", { key })
      assert.containSubset(stale, {
        status: 200,
        headers: { warning: staleWarning },
        body: { valid: true, cache: true, source: "cache", stale: true }
      })
      assert.strictEqual(usedOf(stale.headers["x-service-usage"]), 4)
      assert.containSubset(yield* validate("ATU10440007", { key, query: { max_age: "93600" } }), { body: { stale: true } })
      assertProblem(yield* validate("ATU10440007", { key, query: { max_age: "86400" } }), "SOURCE_UNAVAILABLE")
      assertProblem(yield* validate("ATU10440007", { key, query: { force_live: "1" } }), "SOURCE_UNAVAILABLE")
      yield* travel("24 hours")
      assertProblem(yield* validate("ATU10440007", { key }), "SOURCE_UNAVAILABLE")
    }
  )
})

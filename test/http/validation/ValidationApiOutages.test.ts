import { Effect, Fiber, Layer } from "effect"
import { Sandbox } from "#infra/sandbox/Sandbox.ts"
import { vatIdEnding } from "#infra/sandbox/MagicNumbers.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const staleWarning = '110 - "Response is Stale"'

/** Starts a replica whose circuit breakers are closed, and takes down VIES or both sources. */
const startWith = Effect.fnUntraced(function* (down: "vies" | "both", settings: RunningService.Settings = {}) {
  const sandbox = yield* Sandbox
  yield* sandbox.reset
  const service = yield* RunningService.make(settings)
  yield* sandbox.configure({ vies_available: false, bzst_available: down === "vies" })
  return { ...service, sandbox, key: yield* service.newKey }
})

const usedOf = (usage: string | undefined) => Number(usage?.split("/")[0])

const whileDown = Layer.effect(RunningService.RunningService, startWith("vies")).pipe(
  Layer.provideMerge(RunningService.layerGround)
)

layer(whileDown, { excludeTestServices: true })("while VIES is down", (it) => {
  it.effect("the BZSt answers for a German VAT ID, and the answer is cached", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    assert.containSubset(yield* validate("DE100440001", { key }), {
      status: 200,
      body: { valid: true, source: "bzst", cache: false, company_name: null, consultation_number: null }
    })
    assert.containSubset(yield* validate("DE100440001", { key }), { status: 200, body: { valid: true, source: "cache" } })
    assert.containSubset(yield* validate("DE111111111", { key }), { status: 200, body: { valid: false, source: "bzst" } })
  })

  it.effect("the BZSt gets the caller's requester VAT ID if supplied", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    const sandbox = yield* Sandbox
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
  })

  it.effect("anonymous callers and other member states get a 503 with Retry-After without a charge", function* () {
    const { newKey, validate } = yield* RunningService.RunningService
    const key = yield* newKey
    const sandbox = yield* Sandbox
    const asked = yield* sandbox.checks({ source: "bzst" })
    for (const reply of [yield* validate("DE100440005"), yield* validate("ATU10440006", { key })]) {
      const { message } = assertProblem(reply, "SOURCE_UNAVAILABLE")
      assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/u)
      assert.match(message, /says nothing about the VAT ID/u)
      assert.strictEqual(usedOf(reply.headers["x-service-usage"]), 0)
    }
    assert.strictEqual(yield* sandbox.checks({ source: "bzst" }), asked)
  })
})

layer(RunningService.layerGround, { excludeTestServices: true })(
  "while VIES is down, without a requester of the operator",
  (it) => {
    it.effect("a stale answer is served with a warning and charged, until STALE_MAX_AGE", function* () {
      const { key, sandbox, travel, validate } = yield* startWith("vies", RunningService.otherSettings)
      yield* sandbox.configure({ vies_available: true })
      yield* validate("ATU10440007", { key })
      yield* sandbox.configure({ vies_available: false })
      yield* travel("25 hours")
      const stale = yield* validate("ATU10440007", { key })
      assert.containSubset(stale, {
        status: 200,
        headers: { warning: staleWarning },
        body: { valid: true, cache: true, source: "cache" }
      })
      assert.strictEqual(usedOf(stale.headers["x-service-usage"]), 2)
      assertProblem(yield* validate("ATU10440007", { key, query: { force_live: "1" } }), "SOURCE_UNAVAILABLE")
      yield* travel("24 hours")
      assertProblem(yield* validate("ATU10440007", { key }), "SOURCE_UNAVAILABLE")
    })

    it.effect("the error message names the missing requester, without which the BZSt is not queried", function* () {
      const { key, sandbox, validate } = yield* startWith("vies", RunningService.otherSettings)
      const { message } = assertProblem(yield* validate("DE100440004", { key }), "SOURCE_UNAVAILABLE")
      assert.include(message, "requester_vat_id")
      assert.strictEqual(yield* sandbox.checks({ source: "bzst" }), 0)
      const reply = yield* validate("DE100440004", { key, query: { requester_vat_id: "DE811115368" } })
      assert.containSubset(reply, { status: 200, body: { source: "bzst" } })
    })
  }
)

layer(RunningService.layerGround, { excludeTestServices: true })("while one register behind VIES is down", (it) => {
  it.effect("the BZSt answers for its VAT IDs, and VIES for all others", function* () {
    const { get, key, sandbox, travel, validate } = yield* startWith("vies")
    yield* sandbox.configure({ vies_available: true, vies_unavailable_member_states: ["DE"] })
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
    // The next German VAT ID would be sent to VIES again.
    yield* travel("20 seconds")
    assert.containSubset(yield* get("/v1/status"), { body: { active_source: "vies", failover_active: false } })
  })
})

layer(RunningService.layerGround, { excludeTestServices: true })("while VIES hangs", (it) => {
  it.effect("the BZSt answers for a German VAT ID and others fail, within the deadline", function* () {
    const { key, sandbox, travel, validate } = yield* startWith("vies")
    yield* sandbox.configure({ vies_available: true })
    yield* sandbox.script([{ kind: "hang", source: "vies" }])
    const asked = [validate("DE100446001", { key }), validate("ATU10446002", { key })] as const
    const replies = yield* Effect.forkChild(Effect.all(asked, { concurrency: "unbounded" }))
    yield* sandbox.until(({ vies }) => vies.in_flight === 2)
    yield* travel("21 seconds")
    const [german, austrian] = yield* Fiber.join(replies)
    assert.containSubset(german, { status: 200, body: { valid: true, source: "bzst" } })
    assertProblem(austrian, "SOURCE_UNAVAILABLE")
  })
})

layer(RunningService.layerGround, { excludeTestServices: true })("while both sources are down", (it) => {
  it.effect("the fourth failure of a VAT ID within an hour is charged", function* () {
    const { key, validate } = yield* startWith("both")
    const used = Effect.fnUntraced(function* (vatId: string) {
      const reply = yield* validate(vatId, { key })
      assertProblem(reply, "SOURCE_UNAVAILABLE")
      return usedOf(reply.headers["x-service-usage"])
    })
    const counts = yield* Effect.forEach([1, 2, 3, 4, 5], () => used("DE100450001"))
    assert.deepStrictEqual(counts, [0, 0, 0, 1, 2])
    assert.strictEqual(yield* used("DE100450002"), 2)
  })
})

import { Effect, Schema } from "effect"
import * as Rows from "#test/support/Rows.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const settings = { VIES_PER_DAY: "5" }
const path = "/v1/validations"
const soon = { prefer: "respond-async, wait=20" }

/** Waits until `count` tasks wait for a retry, and returns their failures. */
const waiting = Effect.fnUntraced(function* (count: number) {
  const find = Rows.all(
    { failure: Schema.String, is_due_tomorrow: Schema.Boolean },
    (
      sql
    ) => sql`SELECT failure, due_at >= (date_trunc('day', now() AT TIME ZONE 'UTC') + interval '1 day') AT TIME ZONE 'UTC' AS is_due_tomorrow
      FROM vatproof.tasks WHERE closed_by IS NULL AND claim IS NULL AND failure IS NOT NULL`
  )
  return yield* Effect.repeat(find, { until: (rows) => rows.length === count })
})

layer(RunningService.layer(settings), { excludeTestServices: true })("a service with a daily budget of VIES calls", (it) => {
  it.effect(
    "defers accepted validations once 80 % of the budget is used, and calls VIES from no replica once all of it is used",
    function* () {
      const first = yield* RunningService.RunningService
      const second = yield* RunningService.make(settings)
      const sandbox = yield* Sandbox
      const key = yield* first.newKey
      for (const [index, { post }] of [first, second, first, second].entries()) {
        const reply = yield* post(path, { vat_id: `ATU1088000${index}` }, { key, headers: soon })
        assert.containSubset(reply, { status: 200, body: { status: "final", valid: true } })
      }
      const late = yield* first.post(path, { vat_id: "ATU10880005" }, { key, headers: { prefer: "respond-async" } })
      assert.strictEqual(late.status, 202, late.text)
      assert.deepStrictEqual(yield* waiting(1), [{ failure: "vies:BUDGET", is_due_tomorrow: true }])

      assert.containSubset(yield* second.validate("ATU10880006", { key }), { status: 200, body: { source: "vies" } })
      const refused = yield* first.validate("ATU10880007", { key })
      assert.include(assertProblem(refused, "SOURCE_UNAVAILABLE").message, "vies: BUDGET")
      const untilMidnight = 86_400 - (Math.floor(Date.now() / 1_000) % 86_400)
      assert.closeTo(Number(refused.headers["retry-after"]), untilMidnight, 60)
      assert.strictEqual(yield* sandbox.checks({ source: "vies" }), 5)

      // Validations that do not need VIES are answered.
      assert.containSubset(yield* first.validate("ATU10880006", { key }), { status: 200, body: { source: "cache" } })
      assert.containSubset(yield* second.validate("DE100880001", { key }), { status: 200, body: { source: "bzst", valid: true } })
      assert.containSubset(yield* first.post(path, { vat_id: "DE100880002" }, { key, headers: soon }), {
        status: 200,
        body: { source: "bzst" }
      })
      // The used-up budget does not change the state of VIES.
      assert.containSubset((yield* first.get("/v1/status")).body, { sources: { vies: { status: "operational" } } })
      assert.strictEqual(yield* sandbox.checks({ source: "vies" }), 5)
    }
  )
})

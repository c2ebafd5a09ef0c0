/** The history equals the sandbox's record of calls, to the call. */
import { Effect, Schema } from "effect"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { command } from "#test/support/CommandLine.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/status/history"

const Calls = Schema.Struct({
  from: Schema.String,
  source: Schema.String,
  calls: Schema.Int,
  answered: Schema.Int,
  failed: Schema.Record(Schema.String, Schema.Int),
  mean_ms: Schema.NullOr(Schema.Int),
  max_ms: Schema.NullOr(Schema.Int)
})
const decode = Schema.decodeUnknownEffect(
  Schema.Struct({
    timestamp: Schema.String,
    resolution: Schema.Literals(["hour", "day"]),
    member_states: Schema.Record(Schema.String, Schema.Array(Calls))
  }),
  { onExcessProperty: "error" }
)

const historyOf = (service: ServiceClient, query: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(service.get(path, { query }), ({ body }) => decode(body))

/** Returns lines such as `FR vies answered 3` from the history of a service that has not read it before. */
const counted = Effect.fnUntraced(function* (service: ServiceClient, days: string) {
  const { member_states } = yield* historyOf(service, { days })
  const sums = new Map<string, number>()
  const add = (key: string, calls: number) => calls > 0 && sums.set(key, (sums.get(key) ?? 0) + calls)
  for (const [prefix, rows] of Object.entries(member_states))
    for (const { answered, calls, failed, source } of rows) {
      add(`${prefix} ${source} answered`, answered)
      for (const [code, count] of Object.entries(failed)) add(`${prefix} ${source} ${code}`, count)
      assert.strictEqual(
        Object.values(failed).reduce((sum, count) => sum + count, answered),
        calls
      )
    }
  return linesOf(sums)
})

const linesOf = (sums: ReadonlyMap<string, number>) => [...sums].map(([key, calls]) => `${key} ${calls}`).toSorted()

const answers = /^(?:VALID|INVALID|evatr-(?:0000|2001))$/u

/** Returns the same lines from the sandbox's record of calls. */
const recorded = Effect.gen(function* () {
  const { dropped, entries } = yield* (yield* Sandbox).journal()
  assert.strictEqual(dropped, 0)
  const sums = new Map<string, number>()
  for (const { outcome, source, vat_id } of entries) {
    // A probe is about no VAT ID.
    if (vat_id === null) continue
    const key = `${vat_id.slice(0, 2)} ${source} ${answers.test(outcome ?? "") ? "answered" : outcome}`
    sums.set(key, (sums.get(key) ?? 0) + 1)
  }
  return linesOf(sums)
})

let number = 0

const query = { force_live: "1", requester_vat_id: "DE811115368" }

/** Validates a VAT ID of a register that never answers, so that its circuit breaker opens and later attempts call no source. */
const meetOutage = (service: ServiceClient, key: string) =>
  Effect.forEach([1, 2, 3, 4, 5], () => service.validate(vatIdEnding("MT", "999301"), { key, query }), { discard: true })

/**
 * Validates VAT IDs of several member states, some of which VIES or the register does not answer, and again from the cache. With a
 * requester, concurrent validations share no call.
 */
const validateSome = (service: ServiceClient, key: string) =>
  Effect.forEach(
    Array.from({ length: 40 }, () => (number += 1)),
    (nth) => {
      const prefix = ["AT", "FR", "EL", "DE"][nth % 4] ?? "DE"
      const ending = nth % 5 === 0 ? "999301" : nth % 7 === 0 ? "980000" : String(440_000 + nth)
      const vatId = vatIdEnding(prefix, ending)
      return Effect.andThen(service.validate(vatId, { key, query }), service.validate(vatId, { key }))
    },
    { concurrency: 4, discard: true }
  ).pipe(Effect.andThen(meetOutage(service, key)))

layer(RunningService.layerGround, { excludeTestServices: true })("the history of the sources", (it) => {
  it.effect("equals the sandbox's record of calls, over two replicas, a restart and a rebuild", function* () {
    const [first, second] = yield* Effect.all([RunningService.start(), RunningService.start()])
    const key = yield* first.newKey
    yield* Effect.all([validateSome(first, key), validateSome(second, key)], { concurrency: 2 })
    const before = yield* recorded
    assert.isAbove(before.length, 5, before.join())
    assert.deepStrictEqual(yield* counted(first, "7"), before)
    assert.deepStrictEqual(yield* counted(second, "90"), before)
    yield* Effect.all([first.stop, second.stop])

    const third = yield* RunningService.start()
    yield* validateSome(third, key)
    const after = yield* recorded
    assert.notDeepEqual(after, before)
    assert.deepStrictEqual(yield* counted(third, "7"), after)
    yield* MigratedDatabase.execute("UPDATE vatproof.source_hours SET calls = calls + 1")
    const { output } = yield* command("projections", "rebuild", "source_hours")
    assert.match(output, /^source_hours is corrected: it had 0 missing, 0 surplus and \d+ different rows\.$/mu)
    assert.deepStrictEqual(yield* counted(third, "90"), after)
    assert.match((yield* command("projections", "rebuild", "source_hours")).output, /^source_hours matches the events/mu)
    yield* third.stop
  })

  it.effect("counts hours up to a week and days beyond, for one member state or all, and is at most a minute old", function* () {
    const service = yield* RunningService.make()
    const key = yield* service.newKey
    yield* service.validate(vatIdEnding("LU", "440000"), { key })
    const all = yield* historyOf(service)
    assert.strictEqual(all.resolution, "day")
    assert.strictEqual(Object.keys(all.member_states).length, 28)
    assert.deepStrictEqual(all.member_states["XI"], [])
    const hours = yield* historyOf(service, { days: "7", member_state: "LU" })
    assert.strictEqual(hours.resolution, "hour")
    assert.deepStrictEqual(Object.keys(hours.member_states), ["LU"])
    assert.containSubset(hours.member_states["LU"], [{ source: "vies", calls: 1, answered: 1, failed: {} }])
    const calls = Effect.map(historyOf(service, { days: "7", member_state: "LU" }), ({ member_states }) =>
      member_states["LU"]?.map((one) => one.calls)
    )
    yield* service.validate(vatIdEnding("LU", "440001"), { key })
    assert.deepStrictEqual(yield* calls, [1])
    yield* service.travel("61 seconds")
    assert.strictEqual(
      (yield* calls)?.reduce((sum, one) => sum + one, 0),
      2
    )
  })

  it.effect("rejects unknown member states and numbers of days out of range", function* () {
    const { get } = yield* RunningService.make()
    for (const query of [{ member_state: "GR" }, { member_state: "fr" }, { days: "0" }, { days: "91" }, { days: "x" }])
      assertProblem(yield* get(path, { query }), "VALIDATION_ERROR")
  })
})

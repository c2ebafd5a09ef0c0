import { DateTime, Duration, Effect, Schedule, Schema } from "effect"
import { Sandbox } from "#test/support/Sandbox.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import { recovered } from "#test/support/Outages.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u

const One = Schema.Struct({
  status: Schema.Literals(["operational", "degraded", "unavailable"]),
  latency_ms: Schema.NullOr(Schema.Int),
  last_checked: Schema.String.check(Schema.isPattern(instant))
})
const decodeStatus = Schema.decodeUnknownEffect(
  Schema.Struct({
    status: Schema.Literals(["operational", "degraded"]),
    timestamp: Schema.String.check(Schema.isPattern(instant)),
    sources: Schema.Struct({ vies: One, bzst: One, cache: Schema.Struct({ status: One.fields.status }) }),
    active_source: Schema.Literals(["vies", "bzst"]),
    failover_active: Schema.Boolean,
    member_states: Schema.Record(
      Schema.String,
      Schema.Struct({ status: One.fields.status, since: Schema.String.check(Schema.isPattern(instant)) })
    )
  }),
  { onExcessProperty: "error" }
)

/** Waits until the service has recovered from the outage of the previous test. Both sources are up. */
const start = Effect.gen(function* () {
  const sandbox = yield* Sandbox
  yield* sandbox.reset
  const service = yield* RunningService.RunningService
  yield* recovered(service)
  const key = yield* service.newKey
  const status = Effect.flatMap(service.get("/v1/status"), ({ body }) => decodeStatus(body))
  /** Validates four VAT IDs live. If a source is down, these failures open its circuit breaker. */
  const askAll = Effect.forEach([1, 2, 3, 4], (index) =>
    service.validate(vatIdEnding("DE", `47000${index}`), { key, query: { force_live: "1" } })
  )
  const statusWhen = (condition: (report: Effect.Success<typeof status>) => boolean) =>
    status.pipe(Effect.repeat({ until: condition, schedule: Schedule.spaced("10 millis") }))
  return { ...service, sandbox, key, status, askAll, statusWhen }
})

const sourceEvents = Effect.gen(function* () {
  return (yield* Rows.all(
    { type: Schema.String },
    (sql) => sql`SELECT type FROM vatproof.events WHERE stream_id = 'source-vies' ORDER BY position`
  )).map(({ type }) => type)
})

layer(RunningService.layer(), { excludeTestServices: true })("the service", (it) => {
  it.effect("reports in /health that it is up, and the version of its interface", function* () {
    const { get } = yield* RunningService.RunningService
    const reply = yield* get("/health")
    assert.containSubset(reply, { status: 200, body: { status: "ok", version: "0.1.0" } })
    assert.match(reply.text, /"timestamp":"\d{4}-\d\d-\d\dT[\d:.]+Z"/u)
  })

  it.effect("reports itself and its sources as operational while all sources are up", function* () {
    const { status, statusWhen } = yield* start
    const { active_source, failover_active, sources, status: simple } = yield* status
    assert.deepStrictEqual([simple, active_source, failover_active], ["operational", "vies", false])
    assert.deepStrictEqual(
      [sources.vies.status, sources.bzst.status, sources.cache.status],
      ["operational", "operational", "operational"]
    )
    // The first probe measures the latency.
    yield* statusWhen((report) => report.sources.vies.latency_ms !== null && report.sources.bzst.latency_ms !== null)
  })

  it.effect("reports VIES as degraded after a failure of VIES, and as operational two minutes later", function* () {
    const { key, sandbox, status, statusWhen, travel, validate } = yield* start
    yield* sandbox.script([{ kind: "http", http_status: 502, source: "vies", count: 1 }])
    assert.containSubset(yield* validate(vatIdEnding("DE", "470010"), { key }), { status: 200, body: { source: "vies" } })
    const { active_source, failover_active, sources, status: simple } = yield* status
    assert.deepStrictEqual(
      [simple, sources.vies.status, active_source, failover_active],
      ["operational", "degraded", "vies", false]
    )
    yield* travel("2 minutes")
    yield* statusWhen((report) => report.sources.vies.status === "operational")
  })

  it.effect(
    "reports an outage of VIES and the failover, reports the recovery within 30 s, and records both in the event log",
    function* () {
      const { askAll, key, sandbox, status, statusWhen, travel, validate } = yield* start
      yield* sandbox.configure({ vies_available: false })
      for (const reply of yield* askAll) assert.containSubset(reply, { status: 200, body: { source: "bzst" } })
      const down = yield* status
      assert.deepStrictEqual([down.status, down.active_source, down.failover_active], ["operational", "bzst", true])
      assert.deepStrictEqual([down.sources.vies.status, down.sources.vies.latency_ms], ["unavailable", null])
      assert.strictEqual(down.sources.bzst.status, "operational")
      const asked = yield* sandbox.checks({ source: "vies" })
      yield* askAll
      assert.strictEqual(yield* sandbox.checks({ source: "vies" }), asked)

      yield* sandbox.configure({ vies_available: true })
      yield* Effect.forEach(Array.from({ length: 29 }), () => Effect.andThen(travel("1 second"), status), { discard: true })
      const back = yield* statusWhen((report) => report.active_source === "vies")
      assert.isFalse(back.failover_active)
      assert.containSubset(yield* validate(vatIdEnding("DE", "470020"), { key }), { body: { source: "vies" } })
      yield* travel("2 minutes")
      const events = yield* sourceEvents.pipe(
        Effect.repeat({ until: (types) => types.at(-1) === "SourceRecovered", schedule: Schedule.spaced("10 millis") })
      )
      assert.include(events, "SourceUnavailable")
    }
  )

  it.effect("reports itself as degraded while both sources are down", function* () {
    const { askAll, sandbox, status } = yield* start
    yield* sandbox.configure({ vies_available: false, bzst_available: false })
    for (const reply of yield* askAll) assert.strictEqual(reply.status, 503)
    const down = yield* status
    assert.deepStrictEqual([down.status, down.failover_active], ["degraded", false])
    assert.deepStrictEqual([down.sources.vies.status, down.sources.bzst.status], ["unavailable", "unavailable"])
    assert.strictEqual(down.sources.cache.status, "operational")
  })

  it.effect.each([
    ["a call", true],
    ["a probe", false]
  ] as const)("reports itself as degraded within 15 s after %s fails because both sources are down", function* ([_, isAsked]) {
    const { sandbox, status, statusWhen, travel, validate } = yield* start
    yield* statusWhen(({ sources }) => sources.vies.latency_ms !== null && sources.bzst.latency_ms !== null)
    yield* sandbox.configure({ vies_available: false, bzst_available: false })
    if (isAsked) yield* validate("FR40100999703")
    else yield* travel("31 seconds")
    const failed = yield* statusWhen(({ sources }) => sources.vies.status !== "operational")
    yield* Effect.forEach(Array.from({ length: 12 }), () => Effect.andThen(travel("1 second"), status), { discard: true })
    const down = yield* statusWhen((report) => report.status === "degraded")
    const elapsed = DateTime.distance(DateTime.makeUnsafe(failed.timestamp), DateTime.makeUnsafe(down.timestamp))
    assert.isBelow(Duration.toSeconds(elapsed), 15)
  })

  it.effect("reports for each member state whether it is operational, degraded or unavailable, and since when", function* () {
    const { key, sandbox, status, validate } = yield* start
    const before = yield* status
    assert.deepStrictEqual(Object.keys(before.member_states).length, 28)
    assert.isTrue(Object.values(before.member_states).every((one) => one.status === "operational"))
    yield* sandbox.configure({ vies_unavailable_member_states: ["FR", "DE"] })
    for (const index of [1, 2, 3]) {
      yield* validate("FR40100999703", { query: { force_live: "1" } })
      yield* validate(vatIdEnding("DE", `47100${index}`), { key, query: { force_live: "1" } })
    }
    const { member_states: states, status: whole } = yield* status
    assert.strictEqual(whole, "operational")
    assert.deepStrictEqual(
      [states["FR"]?.status, states["DE"]?.status, states["AT"]?.status],
      ["unavailable", "degraded", "operational"]
    )
    for (const prefix of ["FR", "DE"]) assert.isTrue((states[prefix]?.since ?? "") > before.timestamp)
    assert.deepStrictEqual(states["AT"], before.member_states["AT"])
  })
})

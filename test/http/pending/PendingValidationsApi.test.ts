import { Effect, Fiber, Redacted, Schedule, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Sandbox } from "#test/support/Sandbox.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as TcpProxy from "#test/faults/TcpProxy.ts"
import { command } from "#test/support/CommandLine.ts"
import { newPaidKey } from "#test/support/PaidKey.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"
import { TestDatabase } from "#test/support/TestDatabase.ts"
import * as Rows from "#test/support/Rows.ts"

const path = "/v1/validations"
const later = { prefer: "respond-async" }
const soon = { prefer: "respond-async, wait=20" }

const decodeId = Schema.decodeUnknownEffect(Schema.Struct({ validation_id: Schema.String }))
const idOf = ({ body }: Reply) => Effect.map(decodeId(body), ({ validation_id }) => validation_id)

/** Returns the types and the charged units of the events of a validation. */
const eventsOf = Effect.fnUntraced(function* (id: string) {
  return (yield* Rows.all(
    { type: Schema.String, units: Schema.Int },
    (sql) => sql`SELECT type, units FROM vatproof.events WHERE event_id = ${id}::uuid OR causation_id = ${id}::uuid ORDER BY type`
  )).map(({ type, units }) => [type, units])
})

const until = <E, R>(ask: Effect.Effect<Reply, E, R>, status: string) =>
  Effect.repeat(ask, {
    schedule: Schedule.spaced("100 millis"),
    until: ({ body }) => JSON.stringify(body).includes(`"status":"${status}"`)
  })

/** Submits a validation while the register of its member state is down, waits for its first attempt, and brings the register up again. */
const submitPending = Effect.fnUntraced(function* ({ get, post }: RunningService.Replica, key: string, vatId: string, more = {}) {
  const sandbox = yield* Sandbox
  yield* sandbox.configure({ vies_unavailable_member_states: [vatId.slice(0, 2)] })
  const id = yield* idOf(yield* post(path, { vat_id: vatId, ...more }, { key, headers: later }))
  yield* Effect.repeat(get(`${path}/${id}`, { key }), {
    schedule: Schedule.spaced("50 millis"),
    until: ({ text }) => text.includes("MS_UNAVAILABLE")
  })
  yield* sandbox.configure({ vies_unavailable_member_states: [] })
  return id
})

/** Sets columns of a task, for example to make it due now. */
const change = (id: string, set: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE vatproof.tasks SET ${sql.literal(set)} WHERE task_id = ${id}::uuid`)

layer(RunningService.layer(), { excludeTestServices: true })("a submitted validation", (it) => {
  it.effect("is answered at once if the source answers, and its answer stays readable by its id", function* () {
    const { get, newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    const reply = yield* post(path, { vat_id: "ATU10550001", reference: "INV-1" }, { key })
    assert.containSubset(reply, {
      status: 200,
      body: { status: "final", valid: true, vat_id: "ATU10550001", source: "vies", cache: false, reference: "INV-1" }
    })
    const id = yield* idOf(reply)
    const again = yield* get(`${path}/${id}`, { key })
    assert.deepStrictEqual([again.status, again.body], [200, reply.body])
    assert.deepStrictEqual(yield* eventsOf(id), [
      ["ValidationAccepted", 0],
      ["VatIdVerified", 1]
    ])
    const hit = yield* post(path, { vat_id: "ATU10550001" }, { key, headers: later })
    assert.containSubset(hit, {
      status: 200,
      body: { status: "final", source: "cache" },
      headers: { "preference-applied": "respond-async" }
    })
    assert.strictEqual(hit.headers["x-service-usage"], "2/100000")
    assert.notProperty(hit.body, "reference")
    assertProblem(yield* get(`${path}/${id}`, { key: yield* newKey }), "NOT_FOUND")
  })

  it.effect("is accepted during an outage, and answered once the register recovers", function* () {
    const { get, newKey, post } = yield* RunningService.RunningService
    const sandbox = yield* Sandbox
    const key = yield* newKey
    yield* sandbox.configure({ vies_unavailable_member_states: ["SE"] })
    const reply = yield* post(path, { vat_id: "SE556000000001" }, { key, headers: later })
    assert.strictEqual(reply.status, 202, reply.text)
    assert.notProperty(reply.body, "valid")
    const id = yield* idOf(reply)
    assert.strictEqual(reply.headers["location"], `${path}/${id}`)
    assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/u)
    const tried = yield* Effect.repeat(get(`${path}/${id}`, { key }), {
      schedule: Schedule.spaced("100 millis"),
      until: ({ text }) => text.includes("MS_UNAVAILABLE")
    })
    assert.containSubset(tried.body, { status: "pending", last_failure: { source: "vies", code: "MS_UNAVAILABLE" } })
    assert.notProperty(tried.body, "valid")
    assert.deepStrictEqual(yield* eventsOf(id), [["ValidationAccepted", 0]])
    yield* sandbox.configure({ vies_unavailable_member_states: [] })
    const final = yield* until(get(`${path}/${id}`, { key, query: { wait: "30" } }), "final")
    assert.containSubset(final.body, { status: "final", valid: true, validation_id: id })
    assert.strictEqual((yield* get(`${path}/${id}`, { key })).headers["x-service-usage"], "1/100000")
    assert.deepStrictEqual(yield* eventsOf(id), [
      ["ValidationAccepted", 0],
      ["VatIdVerified", 1]
    ])
  })

  it.effect(
    "gets a warning in each response if its company data lacks the name or the city, because the BZSt then compares nothing",
    function* () {
      const service = yield* RunningService.RunningService
      const key = yield* newPaidKey(service)
      const asked = { vat_id: "DE100550012", requester_vat_id: "DE811115368" }
      const confirmed = (company: object) => service.post(path, { ...asked, company }, { key })
      const reply = yield* confirmed({ name: "Muster GmbH" })
      const again = yield* service.get(`${path}/${yield* idOf(reply)}`, { key })
      for (const { headers } of [reply, again, yield* confirmed({ city: "Berlin", zip: "10115" })]) {
        assert.match(headers["warning"] ?? "", /^199 - "Nothing was compared/u)
      }
      assert.isUndefined((yield* confirmed({ name: "Muster GmbH", city: "Berlin" })).headers["warning"])
    }
  )

  it.effect("is a qualified confirmation if it has company data", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service)
    const company = { name: "Muster GmbH", city: "Berlin" }
    const asked = { vat_id: "DE100550002", requester_vat_id: "DE811115368", company }
    for (const headers of [{}, soon]) {
      const reply = yield* service.post(path, asked, { key, headers })
      assert.containSubset(reply, { status: 200, body: { status: "final", qualified_confirmation: { name_match: "match" } } })
      const again = yield* service.get(`${path}/${yield* idOf(reply)}`, { key })
      assert.deepStrictEqual(again.body, reply.body)
    }
    // The BZSt gets the same request at most every five minutes. This request has another company name, so it is sent at once.
    const corrected = { ...asked, company: { ...company, name: "Other GmbH" } }
    const second = yield* service.post(path, corrected, { key, headers: soon })
    assert.containSubset(second, { status: 200, body: { qualified_confirmation: { name_match: "mismatch" } } })
    assertProblem(yield* service.post(path, asked, { key: yield* service.newKey, headers: later }), "PAYMENT_REQUIRED")
  })

  it.effect(
    "is refused with 503 during an outage if the client does not accept a later answer, and with 400 if it is malformed",
    function* () {
      const { newKey, post } = yield* RunningService.RunningService
      const key = yield* newKey
      assertProblem(yield* post(path, { vat_id: vatIdEnding("FI", "999301") }, { key }), "SOURCE_UNAVAILABLE")
      assertProblem(yield* post(path, { vat_id: "XX1" }, { key, headers: later }), "INVALID_VAT_ID")
      assertProblem(yield* post(path, { vat_id: "ATU10550001", compny: {} }, { key }), "VALIDATION_ERROR")
      assertProblem(yield* post(path, { vat_id: "ATU10550001" }), "UNAUTHORIZED")
    }
  )

  it.effect("counts towards the rate limit of the minute in which it is accepted", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* newPaidKey(service, "enterprise")
    const submit = (vat_id: string) => service.post(path, { vat_id }, { key, headers: later })
    for (const [index, remaining] of [1, 0].entries()) {
      const reply = yield* submit(vatIdEnding("MT", `99930${index + 1}`))
      assert.match(reply.headers["ratelimit"] ?? "", new RegExp(`;r=${remaining};`, "u"))
    }
    assertProblem(yield* submit("ATU10550007"), "RATE_LIMIT_EXCEEDED")
  })

  it.effect("can be cancelled while it is pending, but not once it is final", function* () {
    const { ask, get, newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    const pending = yield* idOf(yield* post(path, { vat_id: vatIdEnding("MT", "999301") }, { key, headers: later }))
    const cancelled = yield* ask(`${path}/${pending}`, { method: "DELETE", key })
    assert.containSubset(cancelled, { status: 200, body: { status: "cancelled", reason: "requested" } })
    assert.deepStrictEqual((yield* get(`${path}/${pending}`, { key })).body, cancelled.body)
    const final = yield* post(path, { vat_id: "ATU10550003" }, { key })
    const kept = yield* ask(`${path}/${yield* idOf(final)}`, { method: "DELETE", key })
    assert.deepStrictEqual(kept.body, final.body)
    const list = yield* get(path, { key, query: { status: "cancelled" } })
    assert.containSubset(list.body, { data: [{ validation_id: pending, status: "cancelled" }], next_cursor: null })
  })

  it.effect("stays pending while the quota is used up, and is answered after the quota is raised", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const id = yield* submitPending(service, key, "FI10550001")
    yield* RunningService.setQuota(key, 1)
    assert.strictEqual((yield* service.validate("ATU10550005", { key })).headers["x-service-usage"], "1/1")
    assertProblem(yield* service.post(path, { vat_id: "ATU10550006" }, { key, headers: later }), "PAYMENT_REQUIRED")
    yield* change(id, "due_at = now()")
    const paused = yield* Effect.repeat(service.get(`${path}/${id}`, { key }), {
      schedule: Schedule.spaced("100 millis"),
      until: ({ text }) => text.includes("QUOTA")
    })
    assert.containSubset(paused.body, { status: "pending", attempts: 2, last_failure: { source: null, code: "QUOTA" } })
    assert.notProperty(paused.body, "valid")
    assert.match(
      (yield* command("projections", "list")).output,
      /^Accepted validations: .* 1 paused because their quota is used up/mu
    )
    yield* RunningService.setQuota(key, 2)
    yield* service.travel("5 seconds")
    const final = yield* until(service.get(`${path}/${id}`, { key, query: { wait: "20" } }), "final")
    assert.containSubset(final.body, { status: "final", valid: true })
    assert.strictEqual((yield* service.get(`${path}/${id}`, { key })).headers["x-service-usage"], "2/2")
  })

  it.effect("shows its expiry as the time of the next attempt if the next attempt is due later", function* () {
    const { get, newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    const asked = { vat_id: vatIdEnding("MT", "999301"), expires_in: 60 }
    const id = yield* idOf(yield* post(path, asked, { key, headers: later }))
    yield* change(id, "claim = NULL, failure = NULL, due_at = now() + interval '1 day'")
    const { expires_at, next_attempt_at } = yield* decodeTimes((yield* get(`${path}/${id}`, { key })).body)
    assert.strictEqual(next_attempt_at, expires_at)
  })

  it.effect("is accepted, answered and charged once if the connection is lost on which it was stored", function* () {
    const database = new URL(Redacted.value((yield* TestDatabase).url))
    const port = Number(database.port)
    const proxy = yield* TcpProxy.make(() => port)
    database.host = `127.0.0.1:${proxy.port}`
    const { get, newKey, post } = yield* RunningService.start({ DATABASE_URL: database.href })
    const sql = yield* SqlClient.SqlClient
    const key = yield* newKey
    /** Submits a validation, and resets the connection that stores it while the log is locked. The database does not notice the reset. */
    const submitAndReset = (vat_id: string, headers: Readonly<Record<string, string>>) =>
      Effect.gen(function* () {
        yield* sql`SELECT FROM vatproof.logs FOR UPDATE`
        const submitted = yield* Effect.forkScoped(post(path, { vat_id }, { key, headers }))
        // A transaction sees the activity of its first read until it clears the snapshot.
        const waiting = sql`SELECT FROM pg_stat_activity
          WHERE wait_event_type = 'Lock' AND datname = current_database() AND strpos(query, 'vatproof.append(') > 0`
        yield* Effect.andThen(sql`SELECT pg_stat_clear_snapshot()`, waiting).pipe(
          Effect.repeat({ until: (rows) => rows.length > 0, schedule: Schedule.spaced("2 millis") })
        )
        yield* proxy.reset
        return submitted
      }).pipe(sql.withTransaction, Effect.flatMap(Fiber.join))
    const final = yield* submitAndReset("ATU10550008", {})
    assert.containSubset(final, { status: 200, body: { status: "final", valid: true } })
    const accepted = yield* submitAndReset("ATU10550009", later)
    assert.strictEqual(accepted.status, 202, accepted.text)
    for (const reply of [final, accepted]) {
      assert.isUndefined(reply.headers["idempotent-replayed"])
      const id = yield* idOf(reply)
      yield* until(get(`${path}/${id}`, { key, query: { wait: "20" } }), "final")
      assert.deepStrictEqual(yield* eventsOf(id), [
        ["ValidationAccepted", 0],
        ["VatIdVerified", 1]
      ])
    }
    assert.strictEqual((yield* get(path, { key })).headers["x-service-usage"], "2/100000")
  })

  it.effect("expires without a charge if no source answers in time", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const id = yield* submitPending(service, key, "FI10550002", { expires_in: 60 })
    yield* change(id, "expires_at = now()")
    const expired = yield* until(service.get(`${path}/${id}`, { key, query: { wait: "20" } }), "expired")
    assert.containSubset(expired.body, { status: "expired", reason: null })
    assert.notProperty(expired.body, "valid")
    assert.strictEqual((yield* service.get(`${path}/${id}`, { key })).headers["x-service-usage"], "0/100000")
    assert.deepStrictEqual(yield* eventsOf(id), [
      ["ValidationAccepted", 0],
      ["ValidationExpired", 0]
    ])
  })

  it.effect("is cancelled without a charge if its API key is revoked while it is pending", function* () {
    const service = yield* RunningService.RunningService
    const key = yield* service.newKey
    const id = yield* submitPending(service, key, "FI10550003")
    assert.strictEqual((yield* service.ask("/v1/keys/self", { method: "DELETE", key })).status, 200)
    yield* change(id, "due_at = now()")
    const events = yield* Effect.repeat(eventsOf(id), {
      schedule: Schedule.spaced("100 millis"),
      until: (found) => found.length > 1
    })
    assert.deepStrictEqual(events, [
      ["ValidationAccepted", 0],
      ["ValidationCancelled", 0]
    ])
  })

  it.effect("is listed for its API key, page by page, with filters for state, VAT ID and reference", function* () {
    const { get, newKey, post } = yield* RunningService.RunningService
    const key = yield* newKey
    const ids: Array<string> = []
    for (const reference of ["A", "B", "A"]) {
      ids.unshift(yield* idOf(yield* post(path, { vat_id: "ATU10550004", reference }, { key })))
    }
    const listed = Effect.fnUntraced(function* (query: Readonly<Record<string, string>>) {
      const { body } = yield* get(path, { key, query })
      const decoded = yield* decodeList(body)
      return { ids: decoded.data.map(({ validation_id }) => validation_id), next: decoded.next_cursor }
    })
    assert.deepStrictEqual((yield* listed({})).ids, ids)
    assert.deepStrictEqual((yield* listed({ reference: "A" })).ids, [ids[0], ids[2]])
    assert.containSubset((yield* get(path, { key })).body, { data: [{ reference: "A" }, { reference: "B" }, { reference: "A" }] })
    assert.deepStrictEqual((yield* listed({ vat_id: "ATU10550004", status: "final", reference: "B" })).ids, [ids[1]])
    assert.deepStrictEqual((yield* listed({ vat_id: "ATU99999999" })).ids, [])
    const first = yield* listed({ limit: "2" })
    const second = yield* listed({ limit: "2", cursor: first.next ?? "" })
    assert.deepStrictEqual([...first.ids, ...second.ids, second.next], [...ids, null])
  })
})

const decodeTimes = Schema.decodeUnknownEffect(Schema.Struct({ expires_at: Schema.String, next_attempt_at: Schema.String }))

const decodeList = Schema.decodeUnknownEffect(
  Schema.Struct({
    data: Schema.Array(Schema.Struct({ validation_id: Schema.String })),
    next_cursor: Schema.NullOr(Schema.String)
  })
)

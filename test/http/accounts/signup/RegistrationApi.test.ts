import { Effect } from "effect"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/register"

/** Rejected bodies, and the field that the error names. */
const refused: ReadonlyArray<readonly [unknown, string]> = [
  [{}, "payload"],
  [[], "payload"],
  [null, "payload"],
  ["x@example.org", "payload"],
  [{ email: "no address" }, "email"],
  [{ email: "" }, "email"],
  [{ email: null }, "email"],
  [{ email: 7 }, "email"],
  [{ email: ["a@example.org"] }, "email"],
  [{ email: "a@example.org\n" }, "email"],
  [{ agent_id: "" }, "agent_id"],
  [{ agent_id: {} }, "agent_id"],
  [{ agent_id: "x".repeat(201) }, "agent_id"],
  [{ agent_id: "a\u0000b" }, "agent_id"],
  [{ email: "nul\u0000@example.org" }, "email"],
  [{ mail: "a@example.org" }, "payload"]
]

layer(RunningService.layerShared(), { excludeTestServices: true })("POST /v1/register", (it) => {
  it.effect.each([{ email: "Someone@Example.org" }, { agent_id: "agent 7" }, { email: "both@example.org", agent_id: "x" }])(
    "creates a free API key for %o",
    function* (body) {
      const { post, validate } = yield* RunningService.RunningService
      const reply = yield* post(path, body)
      assert.strictEqual(reply.status, 201)
      assert.match(reply.text, /^\{"api_key":"svc_live_[0-9A-Za-z]{38}","tier":"free","quota":100000\}$/u)
      const key = /svc_live_\w+/u.exec(reply.text)?.[0]
      assert.containSubset(yield* validate("ATU12345678", { key }), { status: 200, headers: { "x-service-usage": "1/100000" } })
    }
  )

  it.effect("returns the monthly quota of the free plan", function* () {
    const { post } = yield* RunningService.make(RunningService.ownLimits)
    const reply = yield* post(path, { agent_id: "x" }, { from: "203.0.113.70" })
    assert.containSubset(reply, { status: 201, body: { tier: "free", quota: 100 } })
  })

  it.effect("creates a key for each of two requests with the same agent_id", function* () {
    const { post } = yield* RunningService.RunningService
    const replies = [yield* post(path, { agent_id: "same" }), yield* post(path, { agent_id: "same" })]
    assert.deepStrictEqual(
      replies.map(({ status }) => status),
      [201, 201]
    )
    assert.strictEqual(new Set(replies.map(({ text }) => text)).size, 2)
  })

  it.effect.each(refused)("rejects %j with an error for the field %s", function* ([body, field]) {
    const { post } = yield* RunningService.RunningService
    const { details } = assertProblem(yield* post(path, body), "VALIDATION_ERROR")
    const fields = details?.map((detail) => detail.field) ?? []
    assert.include(fields, field)
  })

  it.effect("rejects disposable email addresses, including those of subdomains", function* () {
    const { post } = yield* RunningService.RunningService
    for (const email of ["a@mailinator.com", "a@MAILINATOR.com", "a@deep.sub.mailinator.com", "a@yopmail.com"]) {
      assertProblem(yield* post(path, { email }), "DISPOSABLE_EMAIL")
    }
  })

  it.effect("creates at most three accounts a day for one IP address", function* () {
    const { post } = yield* RunningService.make(RunningService.ownLimits)
    const from = "203.0.113.77"
    const asked = Array.from({ length: 8 }, (_, index) => post(path, { agent_id: `agent ${index}` }, { from }))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.lengthOf(
      replies.filter(({ status }) => status === 201),
      3
    )
    for (const reply of replies.filter(({ status }) => status !== 201)) {
      assertProblem(reply, "RATE_LIMIT_EXCEEDED")
      const seconds = Number(reply.headers["retry-after"])
      assert.isTrue(seconds > 86_000 && seconds <= 86_400, reply.headers["retry-after"])
    }
    assert.strictEqual((yield* post(path, { agent_id: "x" }, { from: "203.0.113.78" })).status, 201)
  })

  it.effect("counts created accounts towards the limit per IP address, but not failed requests", function* () {
    const { post } = yield* RunningService.make(RunningService.ownLimits)
    const from = "203.0.113.79"
    assert.strictEqual((yield* post(path, { email: "first@example.org" }, { from })).status, 201)
    for (const _ of [1, 2, 3, 4]) assertProblem(yield* post(path, { email: "first@example.org" }, { from }), "CONFLICT")
    for (const agent_id of ["second", "third"]) assert.strictEqual((yield* post(path, { agent_id }, { from })).status, 201)
    assertProblem(yield* post(path, { agent_id: "fourth" }, { from }), "RATE_LIMIT_EXCEEDED")
  })

  it.effect("returns the same API key for 24 hours if the same client repeats the Idempotency-Key", function* () {
    const first = yield* RunningService.make(RunningService.ownLimits)
    const second = yield* RunningService.make(RunningService.ownLimits)
    const body = { email: "once@example.org", agent_id: "agent" }
    const asked = { from: "203.0.113.90", headers: { "idempotency-key": "8e03978e-40d5-43dd-bc93-6894a57f9324" } }
    const replies = yield* Effect.forEach(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? first : second)),
      ({ post }) => post(path, body, asked),
      { concurrency: 20 }
    )
    const last = yield* second.post(path, body, asked)
    assert.strictEqual(last.status, 201, last.text)
    assert.strictEqual(last.headers["idempotent-replayed"], "true")
    for (const reply of replies) {
      if (reply.status === 201) assert.deepStrictEqual(reply.body, last.body)
      else assertProblem(reply, "IDEMPOTENCY_IN_PROGRESS")
    }
    const key = /svc_live_\w+/u.exec(last.text)?.[0] ?? "?"
    assert.containSubset(yield* first.validate("ATU10660006", { key }), {
      status: 200,
      headers: { "x-service-usage": "1/100" }
    })
    assertProblem(yield* first.post(path, { agent_id: "agent" }, asked), "IDEMPOTENCY_KEY_REUSED")
    const other = yield* first.post(path, { agent_id: "agent" }, { ...asked, from: "203.0.113.91" })
    assert.strictEqual(other.status, 201)
    assert.notInclude(other.text, key)
    for (const guessable of ["register", "register".repeat(5), "0".repeat(64), "12345671".repeat(4)]) {
      const reply = yield* first.post(path, { agent_id: "agent" }, { ...asked, headers: { "idempotency-key": guessable } })
      assert.include(assertProblem(reply, "VALIDATION_ERROR").message, "at least 8 of them different")
    }
    yield* second.travel("25 hours")
    assertProblem(yield* second.post(path, body, asked), "IDEMPOTENCY_KEY_REUSED")
  })

  it.effect("returns no API key again that was revoked or replaced meanwhile, and says so", function* () {
    const service = yield* RunningService.RunningService
    const end = {
      revoked: (key: string) => service.ask("/v1/keys/self", { method: "DELETE", key }),
      replaced: (key: string) => service.post("/v1/keys/rotate", { revoke_old: true }, { key })
    }
    for (const [name, request] of Object.entries(end)) {
      const asked = { headers: { "idempotency-key": `${name}-8e03978e-40d5-43dd-bc93-6894a57f9324` } }
      const { key } = yield* People.register(service, { agent_id: name }, asked)
      assert.strictEqual((yield* service.post(path, { agent_id: name }, asked)).status, 201)
      yield* request(key)
      const { message } = assertProblem(yield* service.post(path, { agent_id: name }, asked), "CONFLICT")
      assert.include(message, "was revoked or replaced; use a new Idempotency-Key")
    }
  })

  it.effect("stores no email address, IP address, agent id or key in the event log", function* () {
    const { post } = yield* RunningService.RunningService
    const reply = yield* post(path, { email: "private@example.org", agent_id: "private agent" }, { from: "198.51.100.200" })
    const key = /svc_live_\w+/u.exec(reply.text)?.[0] ?? "?"
    const stored = yield* RunningService.everythingLogged
    assert.isAbove(stored.length, 1_000)
    for (const secret of ["private", "example.org", "198.51.100.200", key, key.slice(9)]) assert.notInclude(stored, secret)
  })
})

import { Effect, Fiber, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RawHttp from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Reply } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const count = (replies: ReadonlyArray<{ readonly status: number }>, status: number) =>
  replies.filter((reply) => reply.status === status).length

layer(RunningService.layerSharedGround, { excludeTestServices: true })("signing up without a browser", (it) => {
  it.effect("returns a verified account and a token that is accepted", function* () {
    const service = yield* RunningService.make()
    const reply = yield* People.signUp(service, "Program@Example.com")
    assert.strictEqual(reply.status, 201)
    assert.containSubset(reply.body, { auto_verified: true })
    assert.match(reply.text, /"user_id":"[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}"/u)
    const token = yield* People.tokenIn(reply)
    assert.containSubset(yield* service.get("/v1/auth/api-keys", People.bearing(token)), {
      status: 200,
      body: { api_keys: [] }
    })
    assert.strictEqual((yield* People.logIn(service, "program@example.COM")).status, 200)
  })

  it.effect("writes no personal data to the event log", function* () {
    const service = yield* RunningService.make()
    const email = "harriet.special@example.com"
    const token = yield* Effect.flatMap(People.signUp(service, email), People.tokenIn)
    yield* People.issueKey(service, token, { name: "Harriet's own laptop" })
    yield* People.signUpByBrowser(service, "another.person@example.com")
    const [mailed] = yield* MailedTokens.tokensFor("another.person@example.com", 1)
    const log = yield* RunningService.everythingLogged
    for (const fact of ["AccountSignedUp", "EmailVerified", "EmailVerificationRequested", "ApiKeyIssued"])
      assert.include(log, fact)
    const personal = ["harriet", "special", "another", "laptop", "argon2", People.password, token, mailed ?? "?", "127.0.0.1"]
    for (const text of personal) assert.notInclude(log.toLowerCase(), text.toLowerCase())
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a signup", (it) => {
  const wrong: ReadonlyArray<readonly [unknown, string]> = [
    [{ email: "a@example.com" }, "password"],
    [{ password: "long enough" }, "email"],
    [{ email: "no address", password: "long enough" }, "email"],
    [{ email: "a@localhost", password: "long enough" }, "email"],
    [{ email: "nul\u0000@example.com", password: "long enough" }, "email"],
    [{ email: `${"x".repeat(250)}@example.com`, password: "long enough" }, "email"],
    [{ email: "a@example.com", password: "7 chars" }, "password"],
    [{ email: "a@example.com", password: "🐎🐎🐎🐎" }, "password"],
    [{ email: "a@example.com", password: "x".repeat(257) }, "password"],
    [{ email: "a@example.com", password: 12345678 }, "password"],
    [{ email: "a@example.com", password: "half a \ud83d" }, "password"],
    [{ email: "a@example.com", password: "no UTF-8 \ufffd" }, "password"],
    [[], "payload"],
    [null, "payload"]
  ]

  it.effect("is rejected if its body is malformed, and the error does not repeat the password", function* () {
    const service = yield* RunningService.make()
    for (const [body, field] of wrong) {
      const reply = yield* service.post("/v1/auth/signup", body)
      assert.strictEqual(assertProblem(reply, "VALIDATION_ERROR").details?.[0]?.field, field, JSON.stringify(body))
      assert.notMatch(reply.text, /7 chars|12345678|xxxx|🐎/u)
    }
  })

  it.effect(
    "is rejected if its password is invalid UTF-8, because decoding could turn different passwords into the same text",
    function* () {
      const { port } = yield* RunningService.make()
      const body = Buffer.from('{"email":"a@example.com","password":"passw\u00f6rter"}', "latin1")
      const headers = ["content-type: application/json", `content-length: ${body.length}`]
      const reply = yield* RawHttp.send(port, "POST /v1/auth/signup HTTP/1.1", headers, body)
      assert.strictEqual(assertProblem(reply, "VALIDATION_ERROR").details?.[0]?.field, "password")
    }
  )

  it.effect("is accepted with a password of 8 to 256 characters of any kind", function* () {
    const service = yield* RunningService.make()
    for (const [index, password] of [
      "8 chars!",
      "🐎".repeat(8),
      "x".repeat(256),
      "🐎".repeat(256),
      "\u0000".repeat(8)
    ].entries()) {
      const email = `chosen${index}@example.com`
      assert.strictEqual((yield* service.post("/v1/auth/signup", { email, password })).status, 201, password)
    }
    assert.strictEqual((yield* People.logIn(service, "chosen3@example.com", { password: "🐎".repeat(256) })).status, 200)
  })

  it.effect("is rejected if its password is a very common one, in upper or lower case", function* () {
    const service = yield* RunningService.make()
    for (const password of ["password123", "Password123", "QWERTYUIOP"]) {
      const reply = yield* service.post("/v1/auth/signup", { email: "common@example.com", password })
      const { details } = assertProblem(reply, "VALIDATION_ERROR")
      assert.match(JSON.stringify(details), /^\[\{"field":"password","message":"This password is too common/u)
    }
  })

  it.effect(
    "is rejected if its email address, in upper or lower case, belongs to an account; POST /v1/register rejects such an address too",
    function* () {
      const service = yield* RunningService.make()
      assert.strictEqual((yield* service.post("/v1/register", { email: "Agent@Example.com" })).status, 201)
      assertProblem(yield* People.signUp(service, "agent@example.com"), "CONFLICT")
      assert.strictEqual((yield* People.signUp(service, "Person@Example.com")).status, 201)
      assertProblem(yield* People.signUp(service, "PERSON@example.com"), "CONFLICT")
      assertProblem(yield* service.post("/v1/register", { email: "person@EXAMPLE.com" }), "CONFLICT")
      assertProblem(yield* People.logIn(service, "agent@example.com", { password: "" }), "UNAUTHORIZED")
    }
  )

  it.effect("succeeds for only one of many concurrent requests with one address", function* () {
    const both = [yield* RunningService.make(), yield* RunningService.make()] as const
    const asked = Array.from({ length: 6 }, (_, index) => People.signUp(both[index % 2 === 0 ? 0 : 1], "wanted@example.com"))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.deepStrictEqual([count(replies, 201), count(replies, 409)], [1, 5])
  })

  it.effect("is rejected if the client has created three accounts in 24 hours", function* () {
    const service = yield* RunningService.make(RunningService.ownLimits)
    const from = "198.51.100.7"
    const asked = Array.from({ length: 6 }, (_, index) => People.signUp(service, `many${index}@example.com`, { from }))
    const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
    assert.deepStrictEqual([count(replies, 201), count(replies, 429)], [3, 3])
    const refused = yield* People.signUp(service, "another@example.com", { from })
    assertProblem(refused, "RATE_LIMIT_EXCEEDED")
    const seconds = Number(refused.headers["retry-after"])
    assert.isTrue(seconds > 86_000 && seconds <= 86_400, refused.headers["retry-after"])
    assert.strictEqual((yield* People.signUp(service, "another@example.com", { from: "198.51.100.8" })).status, 201)
    assert.strictEqual((yield* service.post("/v1/register", { agent_id: "x" }, { from })).status, 201)
  })

  it.effect(
    "is rejected with 429 for known and unknown email addresses once three concurrent signups of the same client have succeeded",
    function* () {
      const service = yield* RunningService.make(RunningService.ownLimits)
      yield* People.signUp(service, "known@example.com", { from: "198.51.100.20" })
      const asked = [...Array.from({ length: 7 }, (_, index) => `free${index}@example.com`), "known@example.com"]
      const replies = yield* Effect.all(
        asked.map((email) => People.signUp(service, email, { from: "198.51.100.21" })),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual([count(replies, 201), count(replies, 429)], [3, 5])
    }
  )

  it.effect("is rejected at once while sixteen signups of the same client are in flight", function* () {
    const service = yield* RunningService.make()
    const sql = yield* SqlClient.SqlClient
    const told: Array<Reply> = []
    const asked = Array.from({ length: 20 }, (_, index) =>
      Effect.tap(People.signUp(service, `waiting${index}@example.com`, { from: "198.51.100.60" }), (reply) =>
        Effect.sync(() => told.push(reply))
      )
    )
    const waiting = yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`LOCK TABLE vatproof.contacts`
        const fibers = yield* Effect.forEach(asked, (one) => Effect.forkScoped(one, { startImmediately: true }))
        const sentAway = Effect.sync(() => told.length)
        yield* Effect.repeat(sentAway, { until: (count) => count >= 4, schedule: Schedule.spaced("2 millis") })
        for (const reply of told) {
          assertProblem(reply, "RATE_LIMIT_EXCEEDED")
          assert.strictEqual(reply.headers["retry-after"], "2")
        }
        assert.lengthOf(told, 4)
        return fibers
      })
    )
    yield* Effect.forEach(waiting, Fiber.join)
    assert.strictEqual(count(told, 201), 16)
  })

  it.effect("does not count towards the client's limit of accounts if it is rejected", function* () {
    const service = yield* RunningService.make(RunningService.ownLimits)
    const from = "2001:db8:7:7::1"
    yield* People.signUp(service, "mine@example.com", { from })
    for (const email of ["mine@example.com", "x@mailinator.com", "none"]) yield* People.signUp(service, email, { from })
    assert.strictEqual((yield* People.signUp(service, "mine2@example.com", { from: "2001:db8:7:7:8::2" })).status, 201)
    assert.strictEqual((yield* People.signUp(service, "mine3@example.com", { from })).status, 201)
    assertProblem(yield* People.signUp(service, "mine@example.com", { from }), "RATE_LIMIT_EXCEEDED")
  })
})

import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { MailServer } from "#test/support/MailServer.ts"
import * as MailServers from "#test/support/MailServer.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"

const ground = RunningService.layerGround.pipe(Layer.provideMerge(MailServers.layer()))

/** A replica that sends its mails to the mail server. */
const replica = Effect.fnUntraced(function* (settings: RunningService.Settings = {}) {
  const { url } = yield* MailServer
  return yield* RunningService.make({ SMTP_URL: Redacted.value(url), MAIL_FROM: "no-reply@vat.example", ...settings })
})

/** The verification tokens in the mails to an address, once there are so many. */
const tokensFor = Effect.fnUntraced(function* (email: string, count: number) {
  const { arrived } = yield* MailServer
  const tokens = Effect.map(arrived, (mails) =>
    mails
      .filter(({ session }) => session.envelope.rcptTo.some(({ address }) => address === email))
      .flatMap(({ parsed }) => /verify-email\?token=([\da-f]{64})/u.exec(parsed.text ?? "")?.[1] ?? [])
  )
  return yield* Effect.repeat(tokens, { schedule: Schedule.spaced("10 millis"), until: (found) => found.length >= count })
})

/** Waits until every mail that was asked for has been delivered. */
const allDelivered = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const open = sql`SELECT mail_id FROM vatproof.outbox WHERE settled_at IS NULL`
  yield* Effect.repeat(open, { schedule: Schedule.spaced("10 millis"), until: (rows) => rows.length === 0 })
})

const get = (service: ServiceClient, token: string, accept?: string) =>
  service.get("/v1/auth/verify-email", { query: { token }, headers: accept === undefined ? {} : { accept } })

const count = (replies: ReadonlyArray<{ readonly status: number }>, status: number) =>
  replies.filter((reply) => reply.status === status).length

layer(ground, { excludeTestServices: true })("signing up without a browser", (it) => {
  it.effect("gives a verified account and a token that works at once", () =>
    Effect.gen(function* () {
      const service = yield* replica()
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
  )

  it.effect("is told by the User-Agent", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const agents = ["curl/8.5.0", "python-requests/2.32", "mozilla/5.0", "Claude-User/1.0", ""]
      for (const [index, agent] of agents.entries()) {
        const reply = yield* People.signUp(service, `agent${index}@example.com`, { headers: { "user-agent": agent } })
        assert.containSubset(reply, { status: 201, body: { auto_verified: true } }, agent)
      }
      for (const [index, agent] of [People.browser, "Mozilla/5.0 (compatible; Googlebot/2.1)"].entries()) {
        const reply = yield* People.signUp(service, `person${index}@example.com`, { headers: { "user-agent": agent } })
        assert.strictEqual(reply.status, 201)
        assert.hasAllKeys(reply.body, ["message", "user_id"], agent)
      }
    })
  )

  it.effect("leaves nothing personal in the log", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const email = "somebody.special@example.com"
      const token = yield* Effect.flatMap(People.signUp(service, email), People.tokenIn)
      yield* People.issueKey(service, token, { name: "Somebody's own laptop" })
      yield* People.signUpByBrowser(service, "another.person@example.com")
      const [mailed] = yield* tokensFor("another.person@example.com", 1)
      const log = yield* RunningService.everythingLogged
      for (const fact of ["AccountSignedUp", "EmailVerified", "EmailVerificationRequested", "ApiKeyIssued"])
        assert.include(log, fact)
      const personal = ["somebody", "special", "another", "laptop", "argon2", People.password, token, mailed ?? "?", "127.0.0.1"]
      for (const text of personal) assert.notInclude(log.toLowerCase(), text.toLowerCase())
    })
  )
})

layer(ground, { excludeTestServices: true })("signing up with a browser", (it) => {
  it.effect("makes an account that can be used once the link of the mail was opened", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const email = "ann@example.com"
      const reply = yield* People.signUpByBrowser(service, email)
      assert.strictEqual(reply.status, 201)
      assert.hasAllKeys(reply.body, ["message", "user_id"])
      const before = yield* People.logIn(service, email)
      assert.include(assertProblem(before, "UNAUTHORIZED").message, "Confirm your email address")
      const [token = ""] = yield* tokensFor(email, 1)
      const verified = yield* get(service, token)
      assert.containSubset(verified, { status: 200, headers: { "content-type": "application/json" } })
      assert.hasAllKeys(verified.body, ["message"])
      const access = yield* Effect.flatMap(People.logIn(service, email), People.tokenIn)
      assert.strictEqual((yield* service.post("/v1/auth/api-keys", {}, People.bearing(access))).status, 201)
    })
  )

  it.effect("sends a token that is good once, by GET or by POST, and keeps only its hash", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const sql = yield* SqlClient.SqlClient
      yield* People.signUpByBrowser(service, "once@example.com")
      yield* People.signUpByBrowser(service, "twice@example.com")
      const [first = ""] = yield* tokensFor("once@example.com", 1)
      const [second = ""] = yield* tokensFor("twice@example.com", 1)
      yield* allDelivered
      const kept =
        yield* sql`SELECT (SELECT count(*) FROM vatproof.verification_tokens WHERE token_sha256 = sha256(${first}::text::bytea)) AS hashed,
        (SELECT count(*) FROM vatproof.outbox WHERE token IS NOT NULL) AS plain`
      assert.deepStrictEqual(kept, [{ hashed: 1n, plain: 0n }])
      assert.strictEqual((yield* get(service, first)).status, 200)
      assertProblem(yield* get(service, first), "INVALID_TOKEN")
      assertProblem(yield* service.post("/v1/auth/verify-email", { token: first }), "INVALID_TOKEN")
      const posted = yield* service.post("/v1/auth/verify-email", { token: second.toUpperCase() })
      assert.containSubset(posted, { status: 200, body: { message: "Your email address is confirmed. You can log in now" } })
      assertProblem(yield* get(service, second), "INVALID_TOKEN")
    })
  )

  it.effect("sends a token that only one of many finds good who use it at once", () =>
    Effect.gen(function* () {
      const both = [yield* replica(), yield* replica()] as const
      yield* People.signUpByBrowser(both[0], "race@example.com")
      const [token = ""] = yield* tokensFor("race@example.com", 1)
      const uses = Array.from({ length: 12 }, (_, index) => get(both[index % 2 === 0 ? 0 : 1], token))
      const replies = yield* Effect.all(uses, { concurrency: "unbounded" })
      assert.deepStrictEqual([count(replies, 200), count(replies, 400)], [1, 11])
    })
  )

  it.effect("sends a token that expires after 24 hours; a new mail brings a new one", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const email = "late@example.com"
      yield* People.signUpByBrowser(service, email)
      const [old = ""] = yield* tokensFor(email, 1)
      yield* service.travel({ hours: 24, seconds: 1 })
      assertProblem(yield* get(service, old), "TOKEN_EXPIRED")
      assertProblem(yield* service.post("/v1/auth/verify-email", { token: old }), "TOKEN_EXPIRED")
      assertProblem(yield* People.signUpByBrowser(service, email), "CONFLICT")
      const fresh = (yield* tokensFor(email, 2)).find((token) => token !== old)
      assert.strictEqual((yield* get(service, fresh ?? "")).status, 200)
      assertProblem(yield* get(service, old), "INVALID_TOKEN")
      assert.strictEqual((yield* People.logIn(service, email)).status, 200)
    })
  )

  it.effect("again sends another mail after ten minutes at the earliest, and one only", () =>
    Effect.gen(function* () {
      const both = [yield* replica(), yield* replica()] as const
      const email = "again@example.com"
      const again = Effect.all(
        Array.from({ length: 6 }, (_, index) => People.signUpByBrowser(both[index % 2 === 0 ? 0 : 1], email.toUpperCase())),
        { concurrency: "unbounded" }
      )
      const first = yield* again
      assert.deepStrictEqual([count(first, 201), count(first, 409)], [1, 5])
      assert.strictEqual(count(yield* again, 409), 6)
      yield* allDelivered
      assert.lengthOf(yield* tokensFor(email.toUpperCase(), 1), 1)
      for (const one of both) yield* one.travel("10 minutes")
      assert.strictEqual(count(yield* again, 409), 6)
      yield* allDelivered
      const tokens = yield* tokensFor(email.toUpperCase(), 2)
      assert.lengthOf(tokens, 2)
      assert.strictEqual((yield* get(both[1], tokens[0] ?? "")).status, 200)
      for (const one of both) yield* one.travel("1 hour")
      assert.strictEqual(count(yield* again, 409), 6)
      yield* allDelivered
      assert.lengthOf(yield* tokensFor(email.toUpperCase(), 2), 2)
    })
  )
})

layer(ground, { excludeTestServices: true })("opening the link of a mail", (it) => {
  const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

  it.effect("shows people a page that needs nothing from elsewhere", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      yield* People.signUpByBrowser(service, "reader@example.com")
      const [token = ""] = yield* tokensFor("reader@example.com", 1)
      const page = yield* get(service, token, accept)
      assert.strictEqual(page.status, 200)
      assert.strictEqual(page.headers["content-type"], "text/html; charset=utf-8")
      assert.strictEqual(page.headers["referrer-policy"], "no-referrer")
      assert.include(page.headers["content-security-policy"], "default-src 'none'")
      assert.isDefined(page.headers["x-request-id"])
      assert.match(
        page.text,
        /^<!doctype html>\n<html lang="en">[\s\S]*<title>.+<\/title>[\s\S]*<h1>Your address is confirmed<\/h1>/u
      )
      assert.notMatch(page.text, /<script|src=|href=|url\(|https?:/u)
      assert.notInclude(page.text, token)
      const again = yield* get(service, token, accept)
      assert.strictEqual(again.status, 400)
      assert.strictEqual(again.headers["content-type"], "text/html; charset=utf-8")
      assert.include(again.text, "<h1>Your address is not confirmed</h1>")
      assert.include(again.text, again.headers["x-request-id"])
    })
  )

  it.effect("answers programs with JSON, which is the default", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const header = ["*/*", "application/json", "application/json, text/html;q=0.9", "text/html;q=0.5, */*", "text/plain", ""]
      for (const one of header) assertProblem(yield* get(service, "f".repeat(64), one), "INVALID_TOKEN")
      assertProblem(yield* service.get("/v1/auth/verify-email", { headers: { accept } }), "VALIDATION_ERROR")
    })
  )

  it.effect("with HEAD, as mail scanners do, changes nothing", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      yield* People.signUpByBrowser(service, "scanned@example.com")
      const [token = ""] = yield* tokensFor("scanned@example.com", 1)
      const head = service.ask("/v1/auth/verify-email", { method: "HEAD", query: { token } })
      assert.strictEqual((yield* head).status, 200)
      assertProblem(yield* People.logIn(service, "scanned@example.com"), "UNAUTHORIZED")
      assert.strictEqual((yield* get(service, token)).status, 200)
      assert.strictEqual((yield* head).status, 400)
    })
  )

  it.effect("that was never in a mail is refused, whatever it contains", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      const wrong = [
        "",
        "abc",
        "0".repeat(64),
        "g".repeat(64),
        "0".repeat(65),
        "\u0000",
        "' OR 1=1 --",
        "ü".repeat(64),
        "0".repeat(9_000)
      ]
      for (const token of wrong) {
        assertProblem(yield* get(service, token), "INVALID_TOKEN")
        assertProblem(yield* service.post("/v1/auth/verify-email", { token }), "INVALID_TOKEN")
      }
      for (const body of [{}, [], { token: 7 }, { token: null }, null]) {
        assertProblem(yield* service.post("/v1/auth/verify-email", body), "VALIDATION_ERROR")
      }
    })
  )
})

layer(ground, { excludeTestServices: true })("a signup is refused", (it) => {
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
    [[], "payload"],
    [null, "payload"]
  ]

  it.effect("when it is not as it should be, without an echo of the password", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      for (const [body, field] of wrong) {
        const reply = yield* service.post("/v1/auth/signup", body)
        assert.strictEqual(assertProblem(reply, "VALIDATION_ERROR").details?.[0]?.field, field, JSON.stringify(body))
        assert.notMatch(reply.text, /7 chars|12345678|xxxx|🐎/u)
      }
    })
  )

  it.effect("unless the password has 8 to 256 characters, whichever they are", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      for (const [index, password] of [
        "8 chars!",
        "🐎".repeat(8),
        "x".repeat(256),
        "🐎".repeat(256),
        "\u0000".repeat(8)
      ].entries()) {
        const email = `chosen${index}@example.com`
        assert.strictEqual((yield* service.post("/v1/auth/signup", { email, password })).status, 201, password)
        assert.strictEqual((yield* People.logIn(service, email, { password })).status, 200, password)
      }
    })
  )

  it.effect("for an address of a disposable provider, subdomains included", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      for (const email of ["x@mailinator.com", "x@MAILINATOR.com", "x@deep.down.mailinator.com"]) {
        assertProblem(yield* People.signUp(service, email), "DISPOSABLE_EMAIL")
      }
    })
  )

  it.effect("for an address that somebody has, in any case, by either way", () =>
    Effect.gen(function* () {
      const service = yield* replica()
      assert.strictEqual((yield* service.post("/v1/register", { email: "Agent@Example.com" })).status, 201)
      assertProblem(yield* People.signUp(service, "agent@example.com"), "CONFLICT")
      assert.strictEqual((yield* People.signUp(service, "Person@Example.com")).status, 201)
      assertProblem(yield* People.signUp(service, "PERSON@example.com"), "CONFLICT")
      assertProblem(yield* service.post("/v1/register", { email: "person@EXAMPLE.com" }), "CONFLICT")
      assertProblem(yield* People.logIn(service, "agent@example.com", { password: "" }), "UNAUTHORIZED")
    })
  )

  it.effect("to all but one of many who want one address at once", () =>
    Effect.gen(function* () {
      const both = [yield* replica(), yield* replica()] as const
      const asked = Array.from({ length: 10 }, (_, index) => People.signUp(both[index % 2 === 0 ? 0 : 1], "wanted@example.com"))
      const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
      assert.deepStrictEqual([count(replies, 201), count(replies, 409)], [1, 9])
    })
  )

  it.effect("after three accounts in 24 hours from one address, on all replicas together", () =>
    Effect.gen(function* () {
      const both = [yield* replica(RunningService.ownLimits), yield* replica(RunningService.ownLimits)] as const
      const from = "198.51.100.7"
      const asked = Array.from({ length: 10 }, (_, index) =>
        People.signUp(both[index % 2 === 0 ? 0 : 1], `many${index}@example.com`, { from })
      )
      const replies = yield* Effect.all(asked, { concurrency: "unbounded" })
      assert.deepStrictEqual([count(replies, 201), count(replies, 429)], [3, 7])
      const refused = yield* People.signUp(both[0], "another@example.com", { from })
      assertProblem(refused, "RATE_LIMIT_EXCEEDED")
      const seconds = Number(refused.headers["retry-after"])
      assert.isTrue(seconds > 86_000 && seconds <= 86_400, refused.headers["retry-after"])
      assert.strictEqual((yield* People.signUp(both[0], "another@example.com", { from: "198.51.100.8" })).status, 201)
      assert.strictEqual((yield* both[0].post("/v1/register", { agent_id: "x" }, { from })).status, 201)
    })
  )

  it.effect("by which no place is taken", () =>
    Effect.gen(function* () {
      const service = yield* replica(RunningService.ownLimits)
      const from = "2001:db8:7:7::1"
      yield* People.signUp(service, "mine@example.com", { from })
      for (const email of ["mine@example.com", "x@mailinator.com", "none"]) yield* People.signUp(service, email, { from })
      assert.strictEqual((yield* People.signUp(service, "mine2@example.com", { from: "2001:db8:7:7:8::2" })).status, 201)
      assert.strictEqual((yield* People.signUp(service, "mine3@example.com", { from })).status, 201)
      assertProblem(yield* People.signUp(service, "mine@example.com", { from }), "RATE_LIMIT_EXCEEDED")
    })
  )
})

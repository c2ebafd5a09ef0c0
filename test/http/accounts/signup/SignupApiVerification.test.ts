import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import { whileLocked } from "#test/support/Outages.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const get = (service: ServiceClient, token: string, accept?: string) =>
  service.get("/v1/auth/verify-email", { query: { token }, headers: accept === undefined ? {} : { accept } })

const count = (replies: ReadonlyArray<{ readonly status: number }>, status: number) =>
  replies.filter((reply) => reply.status === status).length

layer(RunningService.layerSharedGround, { excludeTestServices: true })("signing up with a browser", (it) => {
  it.effect("creates an account that can log in after the mailed link is opened", function* () {
    const service = yield* RunningService.make()
    const email = "ann@example.com"
    const reply = yield* People.signUpByBrowser(service, email)
    assert.strictEqual(reply.status, 201)
    assert.hasAllKeys(reply.body, ["message", "user_id"])
    const before = yield* People.logIn(service, email)
    assert.include(assertProblem(before, "UNAUTHORIZED").message, "Confirm your email address")
    const [token = ""] = yield* MailedTokens.tokensFor(email, 1)
    const verified = yield* get(service, token)
    assert.containSubset(verified, { status: 200, headers: { "content-type": "application/json" } })
    assert.hasAllKeys(verified.body, ["message"])
    const access = yield* Effect.flatMap(People.logIn(service, email), People.tokenIn)
    assert.strictEqual((yield* service.post("/v1/auth/api-keys", {}, People.bearing(access))).status, 201)
  })

  it.effect("mails a token that is valid once, by GET or by POST; the database stores only the hash of the token", function* () {
    const service = yield* RunningService.make()
    const sql = yield* SqlClient.SqlClient
    yield* People.signUpByBrowser(service, "once@example.com")
    yield* People.signUpByBrowser(service, "twice@example.com")
    const [first = ""] = yield* MailedTokens.tokensFor("once@example.com", 1)
    const [second = ""] = yield* MailedTokens.tokensFor("twice@example.com", 1)
    yield* MailedTokens.allDelivered
    const kept =
      yield* sql`SELECT count(*) AS hashed FROM vatproof.mail_tokens WHERE token_sha256 = sha256(${first}::text::bytea)`
    assert.deepStrictEqual(kept, [{ hashed: 1n }])
    assert.strictEqual((yield* get(service, first)).status, 200)
    assertProblem(yield* get(service, first), "INVALID_TOKEN")
    assertProblem(yield* service.post("/v1/auth/verify-email", { token: first }), "INVALID_TOKEN")
    const posted = yield* service.post("/v1/auth/verify-email", { token: second.toUpperCase() })
    assert.containSubset(posted, { status: 200, body: { message: "Your email address is confirmed. You can log in now" } })
    assertProblem(yield* get(service, second), "INVALID_TOKEN")
  })

  it.effect("mails a token that only one of many concurrent requests can use", function* () {
    const both = [yield* RunningService.make(), yield* RunningService.make()] as const
    yield* People.signUpByBrowser(both[0], "race@example.com")
    const [token = ""] = yield* MailedTokens.tokensFor("race@example.com", 1)
    const uses = Array.from({ length: 12 }, (_, index) => get(both[index % 2 === 0 ? 0 : 1], token))
    const replies = yield* Effect.all(uses, { concurrency: "unbounded" })
    assert.deepStrictEqual([count(replies, 200), count(replies, 400)], [1, 11])
  })

  it.effect("mails a token that expires after 24 hours, and mails a new token after another signup", function* () {
    const service = yield* RunningService.make()
    const email = "late@example.com"
    yield* People.signUpByBrowser(service, email)
    const [old = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* MailedTokens.allDelivered
    yield* service.travel({ hours: 24, seconds: 1 })
    assertProblem(yield* get(service, old), "TOKEN_EXPIRED")
    assertProblem(yield* service.post("/v1/auth/verify-email", { token: old }), "TOKEN_EXPIRED")
    assertProblem(yield* People.signUpByBrowser(service, email), "CONFLICT")
    const fresh = (yield* MailedTokens.tokensFor(email, 2)).find((token) => token !== old)
    assert.strictEqual((yield* get(service, fresh ?? "")).status, 200)
    assertProblem(yield* get(service, old), "INVALID_TOKEN")
    assert.strictEqual((yield* People.logIn(service, email)).status, 200)
  })

  it.effect(
    "sends at most three mails for repeated signups of one client, even if other clients signed up these addresses first",
    function* () {
      const service = yield* RunningService.make(RunningService.ownLimits)
      const emails = ["one", "two", "three", "four", "five"].map((name) => `reminded-${name}@example.com`)
      for (const [index, email] of emails.entries())
        yield* People.signUpByBrowser(service, email, { from: `198.51.100.${30 + index}` })
      // The next mail would replace a mail that is still queued.
      yield* MailedTokens.allDelivered
      yield* service.travel("10 minutes")
      const from = "198.51.100.40"
      for (const email of emails) {
        const { message } = assertProblem(yield* People.signUpByBrowser(service, email, { from }), "CONFLICT")
        assert.include(message, "a new mail is sent, at most every 10 minutes and a few a day")
      }
      yield* MailedTokens.allDelivered
      const mails = yield* Effect.forEach(emails, (email) => MailedTokens.tokensFor(email, 1))
      assert.deepStrictEqual(
        mails.map(({ length }) => length),
        [2, 2, 2, 1, 1]
      )
      assert.strictEqual((yield* People.signUpByBrowser(service, "own@example.com", { from })).status, 201)
    }
  )

  it.effect(
    "sends a second mail for repeated signups of one address only after ten minutes, and no third mail within the next hour",
    function* () {
      const both = [yield* RunningService.make(), yield* RunningService.make()] as const
      const email = "again@example.com"
      const again = Effect.all(
        Array.from({ length: 6 }, (_, index) => People.signUpByBrowser(both[index % 2 === 0 ? 0 : 1], email.toUpperCase())),
        { concurrency: "unbounded" }
      )
      const first = yield* again
      assert.deepStrictEqual([count(first, 201), count(first, 409)], [1, 5])
      assert.strictEqual(count(yield* again, 409), 6)
      yield* MailedTokens.allDelivered
      assert.lengthOf(yield* MailedTokens.tokensFor(email.toUpperCase(), 1), 1)
      for (const one of both) yield* one.travel("10 minutes")
      assert.strictEqual(count(yield* again, 409), 6)
      yield* MailedTokens.allDelivered
      const tokens = yield* MailedTokens.tokensFor(email.toUpperCase(), 2)
      assert.lengthOf(tokens, 2)
      assertProblem(yield* get(both[1], tokens[0] ?? ""), "INVALID_TOKEN")
      assert.strictEqual((yield* get(both[1], tokens[1] ?? "")).status, 200)
      for (const one of both) yield* one.travel("1 hour")
      assert.strictEqual(count(yield* again, 409), 6)
      yield* MailedTokens.allDelivered
      assert.lengthOf(yield* MailedTokens.tokensFor(email.toUpperCase(), 2), 2)
    }
  )
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("signing up an unconfirmed address again", (it) => {
  const first = "the first password"
  const second = "the second password"
  const signUpWith = (service: ServiceClient, email: string, password: string) =>
    service.post("/v1/auth/signup", { email, password }, { headers: { "user-agent": People.browser } })
  const outcomes = (service: ServiceClient, email: string) =>
    Effect.forEach([first, second], (password) => Effect.map(People.logIn(service, email, { password }), ({ status }) => status))

  it.effect("sets no password by a newer mail if the signups had different passwords, and invalidates older links", function* () {
    const service = yield* RunningService.make()
    const email = "prehijacked@example.com"
    yield* signUpWith(service, email, first)
    const [older = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* service.travel("10 minutes")
    assertProblem(yield* signUpWith(service, email, second), "CONFLICT")
    const newer = (yield* MailedTokens.tokensFor(email, 2)).find((token) => token !== older) ?? ""
    assertProblem(yield* get(service, older), "INVALID_TOKEN")
    assert.include((yield* get(service, newer)).text, "POST /v1/auth/password-reset")
    assert.deepStrictEqual(yield* outcomes(service, email), [401, 401])
  })

  it.effect("sets no password any more, even if later signups have the first password again", function* () {
    const service = yield* RunningService.make()
    const email = "insisting@example.com"
    for (const password of [first, second]) yield* signUpWith(service, email, password)
    const [older = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* MailedTokens.allDelivered
    yield* service.travel("10 minutes")
    assertProblem(yield* signUpWith(service, email, first), "CONFLICT")
    const newer = (yield* MailedTokens.tokensFor(email, 2)).find((token) => token !== older) ?? ""
    assert.strictEqual((yield* get(service, newer)).status, 200)
    assert.deepStrictEqual(yield* outcomes(service, email), [401, 401])
  })

  it.effect("sets no password if concurrent first signups had different passwords", function* () {
    const service = yield* RunningService.make()
    for (const round of ["a", "b", "c", "d"]) {
      const email = `simultaneous-${round}@example.com`
      const from = (index: number) => ({ headers: { "user-agent": People.browser }, from: `198.51.100.${50 + index}` })
      const signups = [first, second].map((password, index) => service.post("/v1/auth/signup", { email, password }, from(index)))
      const replies = yield* Effect.all(signups, { concurrency: "unbounded" })
      assert.deepStrictEqual([count(replies, 201), count(replies, 409)], [1, 1])
      const [token = ""] = yield* MailedTokens.tokensFor(email, 1)
      assert.strictEqual((yield* get(service, token)).status, 200)
      assert.deepStrictEqual(yield* outcomes(service, email), [401, 401])
    }
  })

  it.effect(
    "leaves the account without a password if the two signups have different passwords and it is too early for a second mail",
    function* () {
      const service = yield* RunningService.make()
      const email = "contested@example.com"
      yield* signUpWith(service, email, first)
      assertProblem(yield* signUpWith(service, email, second), "CONFLICT")
      const [token = ""] = yield* MailedTokens.tokensFor(email, 1)
      const reply = yield* get(service, token)
      assert.strictEqual(reply.status, 200)
      assert.include(reply.text, "POST /v1/auth/password-reset")
      assert.deepStrictEqual(yield* outcomes(service, email), [401, 401])
    }
  )

  it.effect(
    "changes nothing if the password is the same and it is too early for a second mail, or if the address is already confirmed",
    function* () {
      const service = yield* RunningService.make()
      const email = "impatient@example.com"
      for (const status of [201, 409]) assert.strictEqual((yield* signUpWith(service, email, first)).status, status)
      const [token = ""] = yield* MailedTokens.tokensFor(email, 1)
      assert.include((yield* get(service, token)).text, "You can log in now")
      yield* service.travel("10 minutes")
      assertProblem(yield* signUpWith(service, email, second), "CONFLICT")
      assert.deepStrictEqual(yield* outcomes(service, email), [200, 401])
    }
  )
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("opening the link of a mail", (it) => {
  const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

  it.effect("shows a self-contained HTML page", function* () {
    const service = yield* RunningService.make()
    yield* People.signUpByBrowser(service, "reader@example.com")
    const [token = ""] = yield* MailedTokens.tokensFor("reader@example.com", 1)
    const page = yield* get(service, token, accept)
    assert.strictEqual(page.status, 200)
    assert.strictEqual(page.headers["content-type"], "text/html; charset=utf-8")
    assert.strictEqual(page.headers["referrer-policy"], "no-referrer")
    assert.include(page.headers["content-security-policy"] ?? "", "default-src 'none'")
    assert.isDefined(page.headers["x-request-id"])
    assert.match(
      page.text,
      /^<!DOCTYPE html>\n<html lang="en">[\s\S]*<title>.+<\/title>[\s\S]*<h1>Your address is confirmed<\/h1>/u
    )
    assert.notMatch(page.text, /<script|src=|href=|url\(|https?:/u)
    assert.notInclude(page.text, token)
    const again = yield* get(service, token, accept)
    assert.strictEqual(again.status, 400)
    assert.strictEqual(again.headers["content-type"], "text/html; charset=utf-8")
    assert.include(again.text, "<h1>This link is no longer valid</h1>")
    assert.include(again.text, "just log in")
    assert.notInclude(again.text, "not confirmed")
    assert.include(again.text, again.headers["x-request-id"] ?? "?")
    assert.notInclude(again.text, "gray")
  })

  it.effect("shows a page that asks the user to retry during a database outage", function* () {
    const service = yield* RunningService.make()
    const page = yield* whileLocked(service, "mail_tokens", get(service, "0".repeat(64), accept))
    assert.strictEqual(page.status, 503)
    assert.strictEqual(page.headers["retry-after"], "2")
    assert.include(page.text, "<h1>Please open the link again</h1>")
  })

  it.effect("shows how to get another link if the link has expired", function* () {
    const service = yield* RunningService.make()
    yield* People.signUpByBrowser(service, "slow@example.com")
    const [token = ""] = yield* MailedTokens.tokensFor("slow@example.com", 1)
    yield* service.travel({ hours: 24, seconds: 1 })
    const page = yield* get(service, token, accept)
    assert.strictEqual(page.status, 400)
    assert.include(page.text, "<h1>This link is no longer valid</h1>")
    assert.include(page.text, "older than 24 hours. To confirm your address, sign up again with the same address")
  })

  it.effect("shows a German page to a browser that prefers German", function* () {
    const service = yield* RunningService.make()
    yield* People.signUpByBrowser(service, "leser@example.com")
    const [token = ""] = yield* MailedTokens.tokensFor("leser@example.com", 1)
    const german = service.get("/v1/auth/verify-email", {
      query: { token },
      headers: { accept, "accept-language": "de-AT,de;q=0.9,en;q=0.5" }
    })
    const page = yield* german
    assert.containSubset(page.headers, { "content-language": "de", vary: "Accept, Accept-Language, Accept-Encoding" })
    assert.match(page.text, /^<!DOCTYPE html>\n<html lang="de">[\s\S]*<h1>Ihre Adresse ist bestätigt<\/h1>/u)
    assert.include((yield* german).text, "<h1>Dieser Link gilt nicht mehr</h1>")
  })

  it.effect("returns JSON unless the client prefers HTML", function* () {
    const service = yield* RunningService.make()
    const header = ["*/*", "application/json", "application/json, text/html;q=0.9", "text/html;q=0.5, */*", "text/plain", ""]
    for (const one of header) assertProblem(yield* get(service, "f".repeat(64), one), "INVALID_TOKEN")
    assertProblem(yield* service.get("/v1/auth/verify-email", { headers: { accept } }), "VALIDATION_ERROR")
  })

  it.effect("changes nothing if a mail scanner sends a HEAD request", function* () {
    const service = yield* RunningService.make()
    yield* People.signUpByBrowser(service, "scanned@example.com")
    const [token = ""] = yield* MailedTokens.tokensFor("scanned@example.com", 1)
    const head = service.ask("/v1/auth/verify-email", { method: "HEAD", query: { token } })
    assert.strictEqual((yield* head).status, 200)
    assertProblem(yield* People.logIn(service, "scanned@example.com"), "UNAUTHORIZED")
    assert.strictEqual((yield* get(service, token)).status, 200)
    assert.strictEqual((yield* head).status, 400)
  })

  it.effect("is rejected if the token in the link is unknown, whatever text the token is", function* () {
    const service = yield* RunningService.make()
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
})

import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as MailedTokens from "#test/support/MailedTokens.ts"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const path = "/v1/auth/password-reset"
const password = "a new password"

const ask = (service: ServiceClient, email: string, more: Ask = {}) => service.post(path, { email }, more)
const confirm = (service: ServiceClient, token: string, more: object = {}) =>
  service.post(`${path}/confirm`, { token, password, ...more })
const listKeys = (service: ServiceClient, token: string) => service.get("/v1/auth/api-keys", People.bearing(token))
const tokensFor = (email: string, count: number) => MailedTokens.tokensFor(email, count, "password-reset")

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a password reset", (it) => {
  it.effect("sets a new password once, and ends all logins of the account", function* () {
    const service = yield* RunningService.make()
    const other = yield* RunningService.make()
    const { email, token: session } = yield* People.newUser(service)
    assert.strictEqual((yield* ask(service, email.toUpperCase())).status, 202)
    const [token = ""] = yield* tokensFor(email.toUpperCase(), 1)
    assert.strictEqual((yield* listKeys(service, session)).status, 200)
    const uses = Array.from({ length: 6 }, (_, index) => confirm(index % 2 === 0 ? service : other, token.toUpperCase()))
    const replies = yield* Effect.all(uses, { concurrency: "unbounded" })
    assert.lengthOf(
      replies.filter(({ status }) => status === 200),
      1
    )
    for (const reply of replies.filter(({ status }) => status !== 200)) assertProblem(reply, "INVALID_TOKEN")
    for (const one of [service, other]) assertProblem(yield* listKeys(one, session), "UNAUTHORIZED")
    assertProblem(yield* People.logIn(service, email), "UNAUTHORIZED")
    const fresh = yield* Effect.flatMap(People.logIn(service, email, { password }), People.tokenIn)
    assert.strictEqual((yield* listKeys(other, fresh)).status, 200)
  })

  it.effect("confirms an unconfirmed address, and invalidates earlier sign-up links", function* () {
    const service = yield* RunningService.make()
    const email = "unconfirmed@example.com"
    yield* People.signUpByBrowser(service, email)
    const [verification = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* ask(service, email)
    const [token = ""] = yield* tokensFor(email, 1)
    assert.strictEqual((yield* confirm(service, token)).status, 200)
    assert.strictEqual((yield* People.logIn(service, email, { password })).status, 200)
    assertProblem(yield* service.get("/v1/auth/verify-email", { query: { token: verification } }), "INVALID_TOKEN")
  })

  it.effect("revokes the keys of an account if its mail is the first proof of the address, and no keys later", function* () {
    const both = [yield* RunningService.make(), yield* RunningService.make()] as const
    const [service, other] = both
    const { email, token: session } = yield* People.newUser(service)
    const squatted = yield* Effect.replicateEffect(People.issueKey(service, session), 2)
    for (const { key } of squatted) assert.strictEqual((yield* other.get("/v1/usage", { key })).status, 200)
    yield* ask(service, email)
    const [first = ""] = yield* tokensFor(email, 1)
    assert.include((yield* confirm(service, first)).text, "all earlier API keys are revoked")
    for (const one of both) for (const { key } of squatted) assertProblem(yield* one.get("/v1/usage", { key }), "UNAUTHORIZED")
    const access = yield* Effect.flatMap(People.logIn(service, email, { password }), People.tokenIn)
    const { key } = yield* People.issueKey(service, access)
    yield* MailedTokens.allDelivered
    yield* service.travel("10 minutes")
    yield* ask(service, email)
    const second = (yield* tokensFor(email, 2)).find((token) => token !== first) ?? ""
    assert.strictEqual((yield* confirm(service, second)).status, 200)
    assert.strictEqual((yield* other.get("/v1/usage", { key })).status, 200)
  })

  it.effect("revokes no keys of an account whose address the link of the signup confirmed", function* () {
    const service = yield* RunningService.make()
    const email = "confirmed@example.com"
    yield* People.signUpByBrowser(service, email)
    const [verification = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* service.get("/v1/auth/verify-email", { query: { token: verification } })
    const access = yield* Effect.flatMap(People.logIn(service, email), People.tokenIn)
    const { key } = yield* People.issueKey(service, access)
    yield* ask(service, email)
    const [token = ""] = yield* tokensFor(email, 1)
    assert.strictEqual((yield* confirm(service, token)).status, 200)
    assert.strictEqual((yield* service.get("/v1/usage", { key })).status, 200)
  })

  it.effect("opens an account that a stranger registered with the address, and revokes its key", function* () {
    const service = yield* RunningService.make()
    const email = "victim@example.com"
    const { key } = yield* People.register(service, { email })
    const { message } = assertProblem(yield* People.signUpByBrowser(service, email), "CONFLICT")
    assert.include(message, "POST /v1/auth/password-reset")
    yield* ask(service, email)
    const [token = ""] = yield* tokensFor(email, 1)
    assert.strictEqual((yield* confirm(service, token)).status, 200)
    assertProblem(yield* service.get("/v1/usage", { key }), "UNAUTHORIZED")
    const access = yield* Effect.flatMap(People.logIn(service, email, { password }), People.tokenIn)
    assert.containSubset((yield* listKeys(service, access)).body, { api_keys: [{ id: key.slice(0, 12), revoked: true }] })
    const own = yield* People.issueKey(service, access)
    assert.strictEqual((yield* service.get("/v1/usage", { key: own.key })).status, 200)
    const rival = yield* People.newUser(service)
    const claim = service.post("/v1/auth/api-keys/claim", { api_key: own.key }, People.bearing(rival.token))
    assertProblem(yield* claim, "API_KEY_NOT_CLAIMABLE")
  })

  it.effect("requires the token of its mail, which is valid for one hour, and rejects a common password", function* () {
    const service = yield* RunningService.make()
    const email = "slow@example.com"
    yield* People.signUpByBrowser(service, email)
    const [verification = ""] = yield* MailedTokens.tokensFor(email, 1)
    yield* ask(service, email)
    const [token = ""] = yield* tokensFor(email, 1)
    assertProblem(yield* confirm(service, verification), "INVALID_TOKEN")
    assertProblem(yield* service.get("/v1/auth/verify-email", { query: { token } }), "INVALID_TOKEN")
    assertProblem(yield* confirm(service, token, { password: "Password1" }), "VALIDATION_ERROR")
    assertProblem(yield* confirm(service, token, { password: "short" }), "VALIDATION_ERROR")
    for (const wrong of ["", "x", "0".repeat(64)]) assertProblem(yield* confirm(service, wrong), "INVALID_TOKEN")
    yield* service.travel({ hours: 1, seconds: 1 })
    assertProblem(yield* confirm(service, token), "TOKEN_EXPIRED")
  })

  it.effect(
    "returns the same response for known and unknown email addresses, and sends a mail only to the address of an account",
    function* () {
      const service = yield* RunningService.make()
      const { email } = yield* People.newUser(service)
      yield* service.post("/v1/register", { email: "registered@example.com" })
      const replies = yield* Effect.forEach(
        [email, email, "unknown@example.com", "registered@example.com", "no address", ""],
        Effect.fnUntraced(function* (one) {
          const startedMs = yield* Clock.currentTimeMillis
          const { body, status } = yield* ask(service, one)
          assert.isAtLeast((yield* Clock.currentTimeMillis) - startedMs, 495)
          return JSON.stringify([status, body])
        }),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(replies).size, 1, replies.join("\n"))
      yield* MailedTokens.allDelivered
      assert.lengthOf(yield* tokensFor(email, 1), 1)
      assert.lengthOf(yield* tokensFor("registered@example.com", 1), 1)
      assert.lengthOf(yield* tokensFor("unknown@example.com", 0), 0)
    }
  )

  it.effect(
    "sends at most one mail in ten minutes and five a day to an address, and accepts at most twenty requests a day from a client",
    function* () {
      const service = yield* RunningService.make()
      const sql = yield* SqlClient.SqlClient
      const { accountId, email } = yield* People.newUser(service)
      for (let index = 0; index < 6; index += 1) {
        yield* ask(service, email, { from: "198.51.100.9" })
        yield* service.travel("10 minutes")
      }
      yield* MailedTokens.allDelivered
      assert.lengthOf(yield* tokensFor(email, 5), 5)
      const events = yield* sql`SELECT type FROM vatproof.events WHERE stream_id = ${`account-${accountId}`}
        AND type = 'PasswordResetRequested'`
      assert.lengthOf(events, 5)
      yield* sql`UPDATE vatproof.rate_slots SET taken_at = taken_at || array_fill(now(), ARRAY[13])
        WHERE bucket LIKE 'reset/%' AND cardinality(taken_at) = 6`
      assert.strictEqual((yield* ask(service, "unknown@example.com", { from: "198.51.100.9" })).status, 202)
      assertProblem(yield* ask(service, "unknown@example.com", { from: "198.51.100.9" }), "RATE_LIMIT_EXCEEDED")
    }
  )

  it.effect("shows an HTML page with a form; opening the page does not use up the link", function* () {
    const service = yield* RunningService.make()
    const { email } = yield* People.newUser(service)
    yield* ask(service, email)
    const [token = ""] = yield* tokensFor(email, 1)
    const page = yield* service.get(path, { query: { token } })
    assert.strictEqual(page.headers["content-type"], "text/html; charset=utf-8")
    assert.include(page.headers["content-security-policy"] ?? "", "form-action 'self'")
    assert.include(page.text, `<input type="hidden" name="token" value="${token}">`)
    const injected = yield* service.get(path, { query: { token: '"><script>' } })
    assert.notInclude(injected.text, "<script>")
    const send = (password: string) =>
      service.sendForm(`${path}/confirm`, { token, password }, { accept: "text/html", "accept-language": "de" })
    assert.include((yield* send("password123")).text, "Bitte wählen Sie ein anderes Passwort")
    const done = yield* send(password)
    assert.strictEqual(done.status, 200)
    assert.include(done.text, "Ihr Passwort ist gesetzt")
    assert.include((yield* send(password)).text, "Dieser Link gilt nicht mehr")
    assert.strictEqual((yield* People.logIn(service, email, { password })).status, 200)
  })

  it.effect("writes no personal data and no secret to the event log", function* () {
    const service = yield* RunningService.make()
    const { email } = yield* People.newUser(service)
    yield* ask(service, email)
    const [token = ""] = yield* tokensFor(email, 1)
    yield* confirm(service, token)
    const log = yield* RunningService.everythingLogged
    for (const fact of ["PasswordResetRequested", "PasswordChanged"]) assert.include(log, fact)
    for (const secret of [token, password, email, "argon2"]) assert.notInclude(log, secret)
  })
})

layer(RunningService.layerShared(), { excludeTestServices: true })("a change of the password", (it) => {
  const change = (service: ServiceClient, token: string, body: object = {}) =>
    service.post(
      "/v1/auth/password",
      { current_password: People.password, new_password: password, ...body },
      People.bearing(token)
    )

  it.effect("requires the old password, ends all logins and returns a new token", function* () {
    const service = yield* RunningService.RunningService
    const { email, token } = yield* People.newUser(service)
    const second = yield* Effect.flatMap(People.logIn(service, email), People.tokenIn)
    assertProblem(yield* change(service, token, { current_password: "wrong horse" }), "UNAUTHORIZED")
    const { details } = assertProblem(yield* change(service, token, { new_password: "iloveyou1" }), "VALIDATION_ERROR")
    assert.strictEqual(JSON.stringify(details).includes('"field":"new_password"'), true)
    assertProblem(yield* change(service, "none"), "UNAUTHORIZED")
    const reply = yield* change(service, token)
    assert.containSubset(reply, { status: 200, body: { expires_in: 86_400 } })
    const fresh = yield* People.tokenIn(reply)
    for (const old of [token, second]) assertProblem(yield* listKeys(service, old), "UNAUTHORIZED")
    assert.strictEqual((yield* listKeys(service, fresh)).status, 200)
    assertProblem(yield* People.logIn(service, email), "UNAUTHORIZED")
    assert.strictEqual((yield* People.logIn(service, email, { password })).status, 200)
  })

  it.effect("succeeds for only one of many concurrent requests", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    const replies = yield* Effect.all(
      Array.from({ length: 6 }, () => change(service, token)),
      { concurrency: "unbounded" }
    )
    assert.lengthOf(
      replies.filter(({ status }) => status === 200),
      1
    )
  })

  it.effect("is rejected after ten requests with a wrong password", function* () {
    const service = yield* RunningService.RunningService
    const { token } = yield* People.newUser(service)
    for (let index = 0; index < 10; index += 1)
      assertProblem(yield* change(service, token, { current_password: "wrong horse" }), "UNAUTHORIZED")
    assertProblem(yield* change(service, token), "RATE_LIMIT_EXCEEDED")
  })

  it.effect("succeeds at most ten times in 24 hours; after that, a password reset by mail is still possible", function* () {
    const service = yield* RunningService.RunningService
    const { email, token } = yield* People.newUser(service)
    let latest = token
    let current_password = People.password
    for (let index = 0; index < 10; index += 1) {
      const new_password = `${password} ${index}`
      latest = yield* Effect.flatMap(change(service, latest, { current_password, new_password }), People.tokenIn)
      current_password = new_password
    }
    assertProblem(yield* change(service, latest, { current_password }), "RATE_LIMIT_EXCEEDED")
    assert.strictEqual((yield* listKeys(service, latest)).status, 200)
    yield* ask(service, email)
    const [mailed = ""] = yield* tokensFor(email, 1)
    assert.strictEqual((yield* confirm(service, mailed)).status, 200)
  })
})

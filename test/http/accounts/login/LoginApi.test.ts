import { Effect, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { createHmac } from "node:crypto"
import * as People from "#test/support/People.ts"
import { assertProblem } from "#test/support/Problem.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { ServiceClient } from "#test/support/ServiceClient.ts"
import { assert, layer } from "#test/support/Test.ts"

const listKeys = (service: ServiceClient, token: string) => service.get("/v1/auth/api-keys", People.bearing(token))

const wrong = { password: "wrong horse" }

/** Moves the attempts that all sliding rate limits have counted into the past by `minutes`. */
const age = (minutes: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE vatproof.rate_slots
      SET taken_at = ARRAY(SELECT place - ${minutes} * interval '1 minute' FROM unnest(taken_at) AS place)`
  )

layer(RunningService.layerShared(), { excludeTestServices: true })("logging in", (it) => {
  it.effect("returns a token that is valid for 24 hours on every replica", function* () {
    const service = yield* RunningService.make()
    const other = yield* RunningService.RunningService
    const { email } = yield* People.newUser(service)
    const reply = yield* People.logIn(service, email.toUpperCase())
    assert.containSubset(reply, { status: 200, body: { expires_in: 86_400 } })
    assert.hasAllKeys(reply.body, ["token", "expires_in"])
    const token = yield* People.tokenIn(reply)
    for (const one of [service, other]) assert.strictEqual((yield* listKeys(one, token)).status, 200)
    yield* service.travel({ hours: 23, minutes: 59, seconds: 50 })
    assert.strictEqual((yield* listKeys(service, token)).status, 200)
    yield* service.travel("10 seconds")
    assertProblem(yield* listKeys(service, token), "UNAUTHORIZED")
  })

  it.effect("does not reveal whether the address or the password was wrong", function* () {
    const service = yield* RunningService.RunningService
    const { email } = yield* People.newUser(service)
    yield* service.post("/v1/register", { email: "agent@example.com" })
    const attempts = [
      People.logIn(service, email, wrong),
      People.logIn(service, email, { password: `${People.password} ` }),
      People.logIn(service, email, { password: "" }),
      People.logIn(service, email, { password: "x".repeat(10_000) }),
      People.logIn(service, "unknown@example.com"),
      People.logIn(service, "agent@example.com"),
      People.logIn(service, "agent@example.com", { password: "" }),
      People.logIn(service, "no address"),
      People.logIn(service, "nul\u0000@example.com"),
      People.logIn(service, ""),
      People.logIn(service, "' OR 1=1 --")
    ]
    const replies = yield* Effect.forEach(attempts, (attempt) => attempt)
    const told = replies.map((reply) => {
      const { message } = assertProblem(reply, "UNAUTHORIZED")
      const { "content-length": length, date: _, "x-request-id": __, "x-trace-id": ___, ...headers } = reply.headers
      return JSON.stringify([message, length, headers])
    })
    assert.strictEqual(new Set(told).size, 1, told.join("\n"))
  })

  it.effect("records each login, and once an hour the number of refused logins of each account and client", function* () {
    const service = yield* RunningService.start()
    const { accountId, email } = yield* People.newUser(service)
    const from = "203.0.113.77"
    yield* People.logIn(service, email)
    for (const _ of [1, 2, 3]) yield* People.logIn(service, email, { ...wrong, from })
    for (const _ of [1, 2]) yield* People.logIn(service, "unknown@example.com", { ...wrong, from })
    yield* service.travel("61 minutes")
    const sql = yield* SqlClient.SqlClient
    const find = sql`SELECT type, data::json ->> 'account_id' AS account, data::json ->> 'refused' AS refused
        FROM vatproof.events WHERE stream_id = ${`logins-${accountId}`} OR data::json ->> 'account_id' IS NULL AND type = 'LoginsCounted'
          AND position > (SELECT min(position) FROM vatproof.events WHERE stream_id = ${`logins-${accountId}`})
        ORDER BY type, refused`
    const events = yield* Effect.repeat(find, {
      until: (found) => found.length >= 3,
      schedule: Schedule.spaced("20 millis")
    }).pipe(Effect.timeout("10 seconds"))
    assert.deepStrictEqual(events, [
      { type: "LoggedIn", account: accountId, refused: null },
      { type: "LoginsCounted", account: null, refused: "2" },
      { type: "LoginsCounted", account: accountId, refused: "3" }
    ])
    const log = yield* RunningService.everythingLogged
    for (const personal of [email, from, "unknown@example.com"]) assert.notInclude(log, personal)
  })

  it.effect("requires an email address and a password", function* () {
    const service = yield* RunningService.RunningService
    const bodies = [
      {},
      { email: "a@example.com" },
      { password: "x" },
      { email: 1, password: "x" },
      { email: "a", password: null },
      [],
      null
    ]
    for (const body of bodies) assertProblem(yield* service.post("/v1/auth/login", body), "VALIDATION_ERROR")
  })

  it.effect("says that an address is unconfirmed only if the password is correct", function* () {
    const service = yield* RunningService.RunningService
    yield* People.signUpByBrowser(service, "unconfirmed@example.com")
    const right = assertProblem(yield* People.logIn(service, "unconfirmed@example.com"), "UNAUTHORIZED")
    assert.include(right.message, "Confirm your email address first")
    const other = assertProblem(yield* People.logIn(service, "unconfirmed@example.com", wrong), "UNAUTHORIZED")
    assert.notInclude(other.message, "Confirm")
  })
})

layer(RunningService.layerShared(), { excludeTestServices: true })("failed logins", (it) => {
  it.effect(
    "are limited to ten in 15 minutes for one client and one email address; another client can still log in with that address",
    function* () {
      const service = yield* RunningService.make(RunningService.ownLimits)
      const { email } = yield* People.newUser(yield* RunningService.RunningService)
      const from = "203.0.113.1"
      for (const _ of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {
        assertProblem(yield* People.logIn(service, email.toUpperCase(), { ...wrong, from }), "UNAUTHORIZED")
      }
      for (const attempt of [wrong, {}]) {
        const refused = yield* People.logIn(service, email, { ...attempt, from })
        assertProblem(refused, "RATE_LIMIT_EXCEEDED")
        const seconds = Number(refused.headers["retry-after"])
        assert.isTrue(seconds > 800 && seconds <= 900, refused.headers["retry-after"])
      }
      assert.strictEqual((yield* People.logIn(service, email, { from: "203.0.113.2" })).status, 200)
      const { email: other } = yield* People.newUser(yield* RunningService.RunningService)
      assert.strictEqual((yield* People.logIn(service, other, { from })).status, 200)
      yield* age(15)
      assert.strictEqual((yield* People.logIn(service, email, { from })).status, 200)
    }
  )

  it.effect("are limited to fifty in 15 minutes per client, over all email addresses", function* () {
    const service = yield* RunningService.make(RunningService.ownLimits)
    const { email } = yield* People.newUser(yield* RunningService.RunningService)
    const from = "2001:db8:1:1::1"
    for (const index of [1, 2, 3]) {
      assertProblem(yield* People.logIn(service, `unknown${index}@example.com`, { ...wrong, from }), "UNAUTHORIZED")
    }
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE vatproof.rate_slots SET taken_at = taken_at || array_fill(now(), ARRAY[47])
      WHERE bucket LIKE 'login/%' AND cardinality(taken_at) = 3`
    assertProblem(yield* People.logIn(service, email, { from: "2001:db8:1:1:ffff::2" }), "RATE_LIMIT_EXCEEDED")
    assert.strictEqual((yield* People.logIn(service, email, { from: "2001:db8:1:2::1" })).status, 200)
    yield* age(15)
    assert.strictEqual((yield* People.logIn(service, email, { from })).status, 200)
  })
})

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")

/** Signs a token with any header, with the secret of the test service or another one. */
const forge = (header: object, claims: object, secret = "a secret that every replica of a test has") => {
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`
}

layer(RunningService.layerShared(), { excludeTestServices: true })("a login token", (it) => {
  const iat = 1_700_000_000
  const exp = 4_000_000_000

  it.effect("is rejected if it is forged", function* () {
    const service = yield* RunningService.RunningService
    const { accountId, token } = yield* People.newUser(service)
    const claims = { iss: "vatproof", sub: accountId, epoch: 0, iat, exp }
    const header = { alg: "HS256", typ: "JWT" }
    assert.strictEqual((yield* listKeys(service, forge(header, claims))).status, 200)
    const [head, body] = token.split(".")
    const forged = [
      `${encode({ alg: "none", typ: "JWT" })}.${body}.`,
      `${head}.${body}.`,
      `${head}.${body}.AAAA`,
      forge({ ...header, alg: "HS512" }, claims),
      forge(header, claims, "another secret, which is long enough too"),
      forge(header, { ...claims, iss: "stranger" }),
      forge(header, { ...claims, aud: "stranger" }),
      forge(header, { ...claims, exp: iat + 1 }),
      forge(header, { ...claims, sub: "0192f0c0-0000-7000-8000-000000000001" }),
      forge(header, { ...claims, sub: "stranger" }),
      forge(header, { ...claims, epoch: 1 }),
      forge(header, { ...claims, epoch: undefined })
    ]
    for (const one of forged) {
      const reply = yield* listKeys(service, one)
      assertProblem(reply, "UNAUTHORIZED")
      assert.strictEqual(reply.headers["www-authenticate"], "Bearer")
    }
    for (const authorization of ["", "Bearer", "Bearer ", token, `Basic ${token}`, `Bearer ${token} x`, `Token ${token}`]) {
      assertProblem(yield* service.get("/v1/auth/api-keys", { headers: { authorization } }), "UNAUTHORIZED")
    }
  })

  it.effect("is rejected if the account's email address is not verified, or its contact data is erased", function* () {
    const service = yield* RunningService.RunningService
    const sql = yield* SqlClient.SqlClient
    const { accountId, email, token } = yield* People.newUser(service)
    yield* People.issueKey(service, token, { name: "a laptop" })
    yield* sql`UPDATE vatproof.accounts SET verified_at = NULL WHERE account_id = ${accountId}`
    assertProblem(yield* listKeys(service, token), "UNAUTHORIZED")
    yield* sql`UPDATE vatproof.accounts SET verified_at = now() WHERE account_id = ${accountId}`
    assert.strictEqual((yield* listKeys(service, token)).status, 200)
    yield* sql`DELETE FROM vatproof.contacts WHERE account_id = ${accountId}`
    assertProblem(yield* listKeys(service, token), "UNAUTHORIZED")
    assertProblem(yield* People.logIn(service, email), "UNAUTHORIZED")
    assert.deepStrictEqual(yield* sql`SELECT label FROM vatproof.api_key_labels WHERE account_id = ${accountId}`, [])
  })

  it.effect("stays valid after a new JWT secret is configured, while the old secret is still listed", function* () {
    const before = yield* RunningService.RunningService
    const { token } = yield* People.newUser(before)
    const secrets = "a new secret of thirty-two characters, a secret that every replica of a test has"
    const rotated = yield* RunningService.make({ JWT_SECRET: secrets.replace(", ", ",") })
    assert.strictEqual((yield* listKeys(rotated, token)).status, 200)
    const { token: newer } = yield* People.newUser(rotated)
    assertProblem(yield* listKeys(before, newer), "UNAUTHORIZED")
  })
})

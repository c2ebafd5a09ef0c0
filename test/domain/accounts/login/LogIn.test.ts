import { Effect, Fiber, Layer, MutableRef, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { AccessTokens } from "#domain/accounts/AccessTokens.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { LoginLog } from "#domain/accounts/login/LoginLog.ts"
import { type StoredLogin, CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import { LogIn } from "#domain/accounts/login/LogIn.ts"
import { Passwords } from "#domain/accounts/login/Passwords.ts"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const accountId = "0192f0c0-0000-7000-8000-000000000001"

/**
 * Returns the calls of a login to its services in order. Argon2Passwords.test.ts tests that a password check does the same work
 * without a hash.
 */
const stepsOf = Effect.fnUntraced(function* (known: StoredLogin | null, password: string, full: ReadonlyArray<string> = []) {
  const steps = MutableRef.make<ReadonlyArray<string>>([])
  const note = <A>(step: string, value: A) =>
    Effect.sync(() => {
      MutableRef.update(steps, (before) => [...before, step])
      return value
    })
  const granted = { granted: true, retryAfterSeconds: 1 }
  const services = Layer.mergeAll(
    Layer.succeed(AccessTokens, {
      issue: () => note("issue", Redacted.make("token")),
      verify: () => Effect.succeed({ accountId, epoch: 0 })
    }),
    Layer.succeed(KeyedHash, { of: (purpose, text) => `${purpose}:${text}` }),
    Layer.succeed(CredentialStore, {
      byEmail: () => note("find", Option.fromNullishOr(known)),
      byAccount: () => Effect.succeed(Option.none()),
      setPassword: () => Effect.die("a login changes no password")
    }),
    Layer.succeed(LoginLog, {
      succeeded: () => note("log", undefined),
      refused: (_client, account) => note(`count ${account ?? "client"}`, undefined)
    }),
    Layer.succeed(Passwords, {
      refuseCommon: () => Effect.void,
      attempt: (_client, work) =>
        work({
          hash: () => Effect.succeed(Redacted.make("")),
          matches: (given, hash) => note("derive", hash !== null && Redacted.value(given) === Redacted.value(hash))
        })
    }),
    Layer.succeed(RateLimiter, {
      acquireSlots: ([bucket], limit) => note(`take ${limit} of ${bucket}`, granted),
      acquireLease: () => Effect.succeed(true),
      releaseLease: () => Effect.void,
      spendBudget: () => Effect.die("a login asks no source"),
      checkSlots: ([bucket], limit) =>
        Effect.suspend(() => {
          const isFull = bucket !== undefined && full.includes(bucket)
          return note(`look for ${limit} of ${bucket}`, { ...granted, granted: !isFull })
        })
    })
  )
  const { logIn } = yield* Effect.provide(LogIn, LogIn.layer(10).pipe(Layer.provide(services)))
  const outcome = yield* Effect.result(logIn({ client: "client", email: "a@example.com", password: Redacted.make(password) }))
  return { steps: steps.current, outcome: outcome._tag === "Success" ? "token" : outcome.failure._tag }
})

const login = (more: Partial<StoredLogin> = {}): StoredLogin => ({
  accountId,
  passwordHash: Redacted.make("right"),
  verified: true,
  epoch: 0,
  ...more
})

const ofBoth = "login/client/email:a@example.com"
const ofEmail = "login/email:a@example.com"
const looks = [`look for 10 of ${ofBoth}`, "look for 50 of login/client"]
const looksAtEmail = `look for 100 of ${ofEmail}`
const takes = [`take 10 of ${ofBoth}`, "take 50 of login/client", `take 100 of ${ofEmail}`]

describe("a failed login", () => {
  const failing = (counted: string) => ({
    steps: [looksAtEmail, ...looks, "find", "derive", `count ${counted}`, ...takes],
    outcome: "WrongCredentials"
  })

  it.effect(
    "makes the same calls to other services, whether the email address is known or unknown, verified or unverified",
    function* () {
      assert.deepStrictEqual(yield* stepsOf(login(), "wrong"), failing(accountId))
      assert.deepStrictEqual(yield* stepsOf(null, "wrong"), failing("client"))
      assert.deepStrictEqual(yield* stepsOf(login({ passwordHash: null }), "wrong"), failing(accountId))
      assert.deepStrictEqual(yield* stepsOf(login({ verified: false }), "wrong"), failing(accountId))
    }
  )

  it.effect(
    "does not count towards the limit on failed logins if the password is right and only the email address is not verified",
    function* () {
      const { outcome, steps } = yield* stepsOf(login({ verified: false }), "right")
      assert.deepStrictEqual(
        [outcome, steps],
        ["EmailNotVerified", [looksAtEmail, ...looks, "find", "derive", ...looks, `count ${accountId}`]]
      )
    }
  )
})

describe("a login", () => {
  it.effect(
    "that succeeds is in the log before the token is issued, and does not count towards the limit on failed logins",
    function* () {
      assert.deepStrictEqual(yield* stepsOf(login(), "right"), {
        steps: [looksAtEmail, ...looks, "find", "derive", ...looks, "log", "issue"],
        outcome: "token"
      })
    }
  )

  it.effect(
    "waits two seconds, and can then succeed, after too many failed logins of other clients with the same email address",
    function* () {
      const waiting = yield* Effect.forkChild(stepsOf(login(), "right", [ofEmail]), { startImmediately: true })
      yield* TestClock.adjust("1900 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("100 millis")
      const { outcome, steps } = yield* Fiber.join(waiting)
      assert.strictEqual(outcome, "token")
      assert.deepStrictEqual(steps, [looksAtEmail, ...looks, "find", "derive", ...looks, "log", "issue"])
    }
  )

  it.effect("is rejected before the password is checked if its client has had too many failed logins", function* () {
    for (const bucket of [ofBoth, "login/client"]) {
      const { outcome, steps } = yield* stepsOf(login(), "right", [bucket])
      assert.strictEqual(outcome, "RateLimitExceeded")
      assert.notInclude(steps, "derive")
    }
  })
})

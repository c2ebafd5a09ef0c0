/** Logs users in, and authenticates their access tokens (rules 50, 51). */
import { Context, Duration, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { AccessTokens, InvalidAccessToken, type Session } from "#domain/accounts/AccessTokens.ts"
import { emailKey, isEmailAddress } from "#domain/accounts/email/EmailAddress.ts"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { LoginLog } from "#domain/accounts/login/LoginLog.ts"
import { type StoredLogin, CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import { Passwords, type PasswordWork } from "#domain/accounts/login/Passwords.ts"
import { orTooMany, RateLimitExceeded, RateLimiter } from "#domain/callers/RateLimiter.ts"

/** The address is unknown or the password is wrong. Clients are not told which. */
export class WrongCredentials extends Schema.TaggedError<WrongCredentials>()("WrongCredentials", {}) {
  override get message() {
    return "The email address or the password is wrong"
  }
}

/** The password is right, but the address is not verified. */
export class EmailNotVerified extends Schema.TaggedError<EmailNotVerified>()("EmailNotVerified", {}) {
  override get message() {
    return "Confirm your email address first: open the link in the mail we sent you. Sign up again with the same address to get a new mail"
  }
}

/** `client` is a keyed hash of the client's IP address, for the limits. */
export interface Credentials {
  readonly client: string
  readonly email: string
  readonly password: Redacted.Redacted
}

const window = Duration.minutes(15)

/**
 * Factors for two limits on failed logins. The base limit applies to one client with one email address. The limit for one client
 * with all email addresses is `perClient` times the base limit. The limit for one email address with all clients is `perEmail`
 * times the base limit.
 */
const perClient = 5
const perEmail = 10

/**
 * Delay of each attempt to log in with an email address after too many failures, and the maximum number of delayed attempts on a
 * replica.
 */
const delay = Duration.seconds(2)
const maxDelayed = { concurrency: 500, capacity: 500, perKey: 2 }

const tooManyDelayed = new RateLimitExceeded({
  message: "Too many logins with this email address have failed; retry after 2 seconds",
  retryAfterSeconds: 2
})

/** There are too many failed logins with the email address, so this attempt is delayed. */
class Delayed extends Schema.TaggedError<Delayed>()("Delayed", {}) {}

/** Creates a function that returns the limits on failures for a client and an email address. */
const makeBounds = Effect.fnUntraced(function* (failures: number) {
  const keyedHash = yield* KeyedHash
  const rateLimiter = yield* RateLimiter
  const refuse = orTooMany("Too many failed logins from one IP address in 15 minutes")

  return (client: string, email: string) => {
    const emailHash = keyedHash.of("email", emailKey(email))
    const ofBoth = [`login/${client}/${emailHash}`, failures] as const
    const ofClient = [`login/${client}`, failures * perClient] as const
    const ofEmail = [`login/${emailHash}`, failures * perEmail] as const
    const look = ([bucket, limit]: readonly [string, number]) => rateLimiter.checkSlots([bucket], limit, window)
    const take = ([bucket, limit]: readonly [string, number]) => rateLimiter.acquireSlots([bucket], limit, window)
    return {
      /** Fails with RateLimitExceeded for a client with too many failures. */
      check: Effect.forEach([ofBoth, ofClient], (bound) => Effect.flatMap(look(bound), refuse), {
        concurrency: "unbounded",
        discard: true
      }),
      /** Fails with Delayed for an email address with too many failures. */
      checkEmail: Effect.flatMap(look(ofEmail), ({ granted }) => (granted ? Effect.void : Effect.fail(new Delayed({})))),
      /**
       * Counts a failed login. Fails with RateLimitExceeded beyond the limit, so that the client cannot see whether the password
       * was right.
       */
      count: Effect.gen(function* () {
        for (const bound of [ofBoth, ofClient]) yield* Effect.flatMap(take(bound), refuse)
        yield* take(ofEmail)
      })
    }
  }
})

const make = Effect.fnUntraced(function* (failuresPerWindow: number) {
  const accessTokens = yield* AccessTokens
  const boundsOf = yield* makeBounds(failuresPerWindow)
  const delays = yield* FairQueue.make(maxDelayed)
  const log = yield* LoginLog
  const logins = yield* CredentialStore
  const passwords = yield* Passwords

  /**
   * Checks a password and returns an access token. Rejects a client with too many failures; other
   * clients are not affected. If all clients together have too many failures with an email address,
   * every attempt with it is delayed: guesses are slow, and the owner can still log in.
   */
  const logIn = Effect.fn("LogIn.logIn")((credentials: Credentials) => {
    const { client } = credentials
    const { check, checkEmail, count } = boundsOf(client, credentials.email)
    const guess = (work: PasswordWork) => attempt(credentials, work, { check, count })
    const wait = delays.admit(client, Effect.sleep(delay), () => Effect.fail(tooManyDelayed))
    return passwords
      .attempt(client, (work) => Effect.andThen(checkEmail, guess(work)))
      .pipe(Effect.catchTag("Delayed", () => Effect.andThen(wait, passwords.attempt(client, guess))))
  })

  /**
   * Runs one attempt. Counts a failure before it returns the result, so the limit holds exactly for concurrent attempts on any
   * number of replicas. An unknown email address costs the same work as a known one. A successful login is in the log before the
   * client gets the token.
   */
  const attempt = Effect.fnUntraced(function* (
    { client, email, password }: Credentials,
    { matches }: PasswordWork,
    { check, count }: Pick<ReturnType<typeof boundsOf>, "check" | "count">
  ) {
    yield* Effect.tapErrorTag(check, "RateLimitExceeded", () => log.refused(client, null))
    const login = isEmailAddress(email) ? Option.getOrNull(yield* logins.byEmail(email)) : null
    const isRight = yield* matches(password, login?.passwordHash ?? null)
    const refused = log.refused(client, login?.accountId ?? null)
    if (login === null || !isRight) {
      yield* refused
      yield* count
      return yield* new WrongCredentials({})
    }
    // Since the first check, concurrent attempts may have reached the limit.
    yield* Effect.tapErrorTag(check, "RateLimitExceeded", () => refused)
    if (!login.verified) return yield* Effect.andThen(refused, new EmailNotVerified({}))
    yield* log.succeeded(login.accountId)
    return yield* accessTokens.issue(login)
  })

  /**
   * Returns the session of an access token. Fails unless the account is verified and has a password, and the session has the
   * current epoch of the account.
   */
  const byToken = Effect.fn("LogIn.byToken")(function* (token: Redacted.Redacted) {
    const session = yield* accessTokens.verify(token)
    const login = yield* logins.byAccount(session.accountId)
    return yield* Option.match(Option.filter(login, mayUse(session)), {
      onNone: () => Effect.fail(new InvalidAccessToken({})),
      onSome: () => Effect.succeed(session)
    })
  })

  return { logIn, byToken }
})

const mayUse =
  (session: Session) =>
  ({ epoch, passwordHash, verified }: StoredLogin) =>
    verified && passwordHash !== null && epoch === session.epoch

export class LogIn extends Context.Service<LogIn, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/accounts/login/LogIn"
) {
  /**
   * `failuresPerWindow` is the maximum number of failed logins of one client with one email address in 15 minutes. The other
   * limits are multiples of it.
   */
  static readonly layer = (failuresPerWindow: number) => Layer.effect(LogIn, make(failuresPerWindow))
}

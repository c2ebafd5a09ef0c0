/** Logging in, and knowing people by the token they got for it (INTERFACE 4.8 and 5, DECISIONS 15, 33, 34). */
import { Context, Duration, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { AccessTokens, InvalidAccessToken } from "#domain/AccessTokens.ts"
import { emailKey, isEmailAddress } from "#domain/EmailAddress.ts"
import { KeyedHash } from "#domain/KeyedHash.ts"
import { LoginLog } from "#domain/LoginLog.ts"
import { type Login, Logins } from "#domain/Logins.ts"
import { Passwords, type PasswordWork } from "#domain/Passwords.ts"
import { orTooMany, RateLimits } from "#domain/RateLimits.ts"

/** The address is unknown or the password is not its own; which of these is nobody's business. */
export class WrongCredentials extends Schema.TaggedError<WrongCredentials>()("WrongCredentials", {}) {
  override get message() {
    return "The email address or the password is wrong"
  }
}

/** The password is right, but nobody has confirmed the address. */
export class EmailNotVerified extends Schema.TaggedError<EmailNotVerified>()("EmailNotVerified", {}) {
  override get message() {
    return "Confirm your email address first: open the link in the mail we sent you. Sign up again with the same address to get a new mail"
  }
}

/** `client` names who asks, for the limit's sake: a keyed hash of the address. */
export interface Credentials {
  readonly client: string
  readonly email: string
  readonly password: Redacted.Redacted
}

const window = Duration.minutes(15)

const make = Effect.fnUntraced(function* (failuresPerWindow: number) {
  const accessTokens = yield* AccessTokens
  const keyedHash = yield* KeyedHash
  const log = yield* LoginLog
  const logins = yield* Logins
  const passwords = yield* Passwords
  const rateLimits = yield* RateLimits

  const refuse = orTooMany(`At most ${failuresPerWindow} failed logins in 15 minutes, from one address and for one email address`)

  /**
   * Only failures are counted, and what decides is the count at the moment the outcome is told, not when the attempt began: so many
   * wrong guesses are told in a window and not one more, however many are under way on however many replicas. An unknown address costs
   * the same work as a known one. No token is handed out before the log has the login.
   */
  const logIn = Effect.fn("LogIn.logIn")((credentials: Credentials) =>
    passwords.attempt(credentials.client, (work) => attempt(credentials, work))
  )

  const attempt = Effect.fnUntraced(function* ({ client, email, password }: Credentials, { matches }: PasswordWork) {
    const places = [`login/${client}`, `login/${keyedHash.of("email", emailKey(email))}`]
    const look = Effect.flatMap(rateLimits.lookForPlaces(places, failuresPerWindow, window), refuse)
    yield* Effect.tapErrorTag(look, "RateLimitExceeded", () => log.refused(client, null))
    const login = isEmailAddress(email) ? Option.getOrNull(yield* logins.byEmail(email)) : null
    const isRight = yield* matches(password, login?.passwordHash ?? null)
    const refused = log.refused(client, login?.accountId ?? null)
    if (login === null || !isRight) {
      yield* refused
      yield* Effect.flatMap(rateLimits.takePlaces(places, failuresPerWindow, window), refuse)
      return yield* new WrongCredentials({})
    }
    yield* Effect.tapErrorTag(look, "RateLimitExceeded", () => refused)
    if (!login.verified) return yield* Effect.andThen(refused, new EmailNotVerified({}))
    yield* log.succeeded(login.accountId)
    return yield* accessTokens.issue(login.accountId)
  })

  /** The account of a token, which must still be there and verified. */
  const byToken = Effect.fn("LogIn.byToken")(function* (token: Redacted.Redacted) {
    const accountId = yield* accessTokens.verify(token)
    const login = yield* logins.byAccount(accountId)
    return yield* Option.match(Option.filter(login, mayUseToken), {
      onNone: () => Effect.fail(new InvalidAccessToken({})),
      onSome: (known) => Effect.succeed(known.accountId)
    })
  })

  return { logIn, byToken }
})

const mayUseToken = ({ passwordHash, verified }: Login) => verified && passwordHash !== null

export class LogIn extends Context.Service<LogIn, Effect.Success<ReturnType<typeof make>>>()("vatproof/domain/LogIn") {
  /** `failuresPerWindow` logins may fail in 15 minutes, per client address and per email address. */
  static readonly layer = (failuresPerWindow: number) => Layer.effect(LogIn, make(failuresPerWindow))
}

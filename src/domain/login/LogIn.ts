/** Logging in, and knowing people by the token they got for it (rules 50, 51). */
import { Context, Duration, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { AccessTokens, InvalidAccessToken, type Session } from "#domain/accounts/AccessTokens.ts"
import { emailKey, isEmailAddress } from "#domain/email/EmailAddress.ts"
import * as FairQueue from "#domain/kernel/FairQueue.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { LoginLog } from "#domain/login/LoginLog.ts"
import { type StoredLogin, CredentialReader } from "#domain/login/CredentialReader.ts"
import { Passwords, type PasswordWork } from "#domain/login/Passwords.ts"
import { orTooMany, RateLimitExceeded, RateLimits } from "#domain/callers/RateLimits.ts"

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

/** For each failure that a client may have with one email address: those with all addresses, and those of one address from all clients. */
const perClient = 5
const perEmail = 10

/** The wait before an attempt at an email address with too many failures, and the attempts of a replica that wait. */
const delay = Duration.seconds(2)
const maxDelayed = { concurrency: 500, capacity: 500, perKey: 2 }

const tooManyDelayed = new RateLimitExceeded({ message: "Too many logins with this email address wait", retryAfterSeconds: 2 })

/** The email address has so many failures that this attempt has to wait. */
class Delayed extends Schema.TaggedError<Delayed>()("Delayed", {}) {}

/** Gives a function from a client and an email address to the bounds on their failures. */
const makeBounds = Effect.fnUntraced(function* (failures: number) {
  const keyedHash = yield* KeyedHash
  const rateLimits = yield* RateLimits
  const refuse = orTooMany("Too many logins from one address have failed in 15 minutes")

  return (client: string, email: string) => {
    const emailHash = keyedHash.of("email", emailKey(email))
    const ofBoth = [`login/${client}/${emailHash}`, failures] as const
    const ofClient = [`login/${client}`, failures * perClient] as const
    const ofEmail = [`login/${emailHash}`, failures * perEmail] as const
    const look = ([bucket, limit]: readonly [string, number]) => rateLimits.checkSlots([bucket], limit, window)
    const take = ([bucket, limit]: readonly [string, number]) => rateLimits.acquireSlot(bucket, limit, window)
    return {
      /** Refuses a client with too many failures. */
      check: Effect.forEach([ofBoth, ofClient], (bound) => Effect.flatMap(look(bound), refuse), {
        concurrency: "unbounded",
        discard: true
      }),
      /** Fails with Delayed for an email address with too many failures. */
      checkEmail: Effect.flatMap(look(ofEmail), ({ granted }) => (granted ? Effect.void : Effect.fail(new Delayed({})))),
      /** Counts a failure, or refuses: then the failure is not told. */
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
  const logins = yield* CredentialReader
  const passwords = yield* Passwords

  /**
   * A client with too many failures is refused, which locks nobody else out. An email address with too many failures from many clients
   * delays every attempt at it, so its owner gets in and guesses stay few.
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
   * Only failures are counted, and what decides is the count at the moment the outcome is told, not when the attempt began: so many
   * wrong guesses are told in a window and not one more, however many are under way on however many replicas. An unknown address costs
   * the same work as a known one. No token is handed out before the log has the login.
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
    yield* Effect.tapErrorTag(check, "RateLimitExceeded", () => refused)
    if (!login.verified) return yield* Effect.andThen(refused, new EmailNotVerified({}))
    yield* log.succeeded(login.accountId)
    return yield* accessTokens.issue(login)
  })

  /** The session of a token, whose account must still be there, verified, and in the same epoch. */
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

export class LogIn extends Context.Service<LogIn, Effect.Success<ReturnType<typeof make>>>()("vatproof/domain/login/LogIn") {
  /** `failuresPerWindow` logins of one client with one email address may fail in 15 minutes; the other bounds follow from it. */
  static readonly layer = (failuresPerWindow: number) => Layer.effect(LogIn, make(failuresPerWindow))
}

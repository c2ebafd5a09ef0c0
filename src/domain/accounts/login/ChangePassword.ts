/** Changes the password of a logged-in user who sends the current password. */
import { Context, Duration, Effect, Layer, Option, type Redacted, Schema } from "effect"
import { AccessTokens, InvalidAccessToken, type Session } from "#domain/accounts/AccessTokens.ts"
import { PasswordChanged } from "#domain/accounts/AccountEvents.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import { EmailLinks } from "#domain/accounts/email/EmailLinks.ts"
import { Passwords, type PasswordWork } from "#domain/accounts/login/Passwords.ts"
import { orTooMany, RateLimiter } from "#domain/callers/RateLimiter.ts"

/** The client sent a wrong current password. */
export class WrongPassword extends Schema.TaggedError<WrongPassword>()("WrongPassword", {}) {
  override get message() {
    return "The current password is wrong"
  }
}

/** `client` is a keyed hash of the client's IP address, for the limit on concurrent attempts. */
export interface PasswordChange {
  readonly client: string
  readonly session: Session
  readonly current: Redacted.Redacted
  readonly next: Redacted.Redacted
}

/**
 * Maximum number of wrong passwords per account in 15 minutes. Without it, a client with a stolen access token could guess the
 * password.
 */
const maxFailures = 10
const window = Duration.minutes(15)

/** Maximum number of changes per account in 24 hours, because each one stores an event that stays forever. */
const maxChanges = 10

const make = Effect.gen(function* () {
  const accessTokens = yield* AccessTokens
  const accounts = yield* AccountStore
  const links = yield* EmailLinks
  const logins = yield* CredentialStore
  const passwords = yield* Passwords
  const rateLimiter = yield* RateLimiter

  const refuseGuesses = orTooMany("Too many wrong passwords in 15 minutes")
  const refuseChanges = orTooMany("Too many password changes in 24 hours; reset the password with POST /v1/auth/password-reset")

  /** Returns the login of a session. Fails with InvalidAccessToken if the session has ended. */
  const loginOf = Effect.fnUntraced(function* ({ accountId, epoch }: Session) {
    const login = Option.filter(yield* logins.byAccount(accountId), (login) => login.epoch === epoch)
    return yield* Option.match(login, { onNone: () => Effect.fail(new InvalidAccessToken({})), onSome: Effect.succeed })
  })

  /** Verifies the current password, and counts a wrong one. */
  const check = Effect.fnUntraced(function* ({ current, session }: PasswordChange, { matches }: PasswordWork) {
    const bucket = `password/${session.accountId}`
    yield* Effect.flatMap(rateLimiter.checkSlots([bucket], maxFailures, window), refuseGuesses)
    const { passwordHash } = yield* loginOf(session)
    if (yield* matches(current, passwordHash)) return
    yield* Effect.flatMap(rateLimiter.acquireSlots([bucket], maxFailures, window), refuseGuesses)
    return yield* new WrongPassword({})
  })

  /** Sets the password and ends all sessions of the account. Returns an access token of a new session. */
  const change = Effect.fn("ChangePassword.change")(function* (request: PasswordChange) {
    const { client, next, session } = request
    const { accountId } = session
    yield* passwords.refuseCommon(next, "new_password")
    const passwordHash = yield* passwords.attempt(client, (work) => Effect.andThen(check(request, work), work.hash(next)))
    yield* accounts
      .change(
        accountId,
        Effect.fnUntraced(function* () {
          // Checks again under the account's lock: another change of the password may have ended this session.
          yield* loginOf(session)
          yield* Effect.flatMap(
            rateLimiter.acquireSlots([`password-changes/${accountId}`], maxChanges, Duration.days(1)),
            refuseChanges
          )
          const inSameTransaction = () => Effect.andThen(logins.setPassword(accountId, passwordHash), links.removeOf(accountId))
          return { events: [PasswordChanged.make({ account_id: accountId, by: "owner" })], inSameTransaction, value: undefined }
        })
      )
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidAccessToken({}))))
    return yield* accessTokens.issue({ accountId, epoch: session.epoch + 1 })
  })

  return { change }
})

export class ChangePassword extends Context.Service<ChangePassword, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/login/ChangePassword"
) {
  static readonly layer = Layer.effect(ChangePassword, make)
}

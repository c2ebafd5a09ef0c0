/** Mails a link to set a new password, and sets it with the token of the link. */
import { Context, DateTime, Duration, Effect, Layer, Option, type Redacted } from "effect"
import { InvalidToken, refuseExpired, requestPasswordReset, resetPassword } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { emailKey, isEmailAddress } from "#domain/accounts/email/EmailAddress.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import { EmailLinks } from "#domain/accounts/email/EmailLinks.ts"
import { Passwords } from "#domain/accounts/login/Passwords.ts"
import { orTooMany, RateLimiter } from "#domain/callers/RateLimiter.ts"

/** `client` is a keyed hash of the client's IP address, for the limit on requests. */
export interface ResetRequest {
  readonly client: string
  readonly email: string
}

export interface Reset {
  readonly client: string
  readonly token: Redacted.Redacted
  readonly password: Redacted.Redacted
}

const purpose = "reset_password"

/**
 * Limits in 24 hours on requests per client, and on mails per email address. A request beyond the limit on mails gets the usual
 * answer, but no mail is sent.
 */
const maxRequests = 20
const maxMails = 5
const window = Duration.hours(24)
/**
 * Minimum duration of a request. It is longer than the work, so the response time does not reveal whether the email address is
 * known.
 */
const answerTime = "500 millis"

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const keyedHash = yield* KeyedHash
  const links = yield* EmailLinks
  const logins = yield* CredentialStore
  const passwords = yield* Passwords
  const rateLimiter = yield* RateLimiter

  const refuse = orTooMany(`At most ${maxRequests} requests to reset a password in 24 hours from one IP address`)

  /** Mails a link if an account has the address and the last mail is not too recent. */
  const mailTo = Effect.fnUntraced(function* (email: string) {
    const login = isEmailAddress(email) ? Option.getOrNull(yield* logins.byEmail(email)) : null
    if (login === null) return
    const { accountId } = login
    yield* accounts
      .change(accountId, (account, now) => {
        const events = requestPasswordReset(account, now)
        const inSameTransaction = () => (events.length === 0 ? Effect.void : links.send(purpose, { accountId, email }, now))
        return Effect.succeed({ events, inSameTransaction, value: undefined })
      })
      // The account was closed after its login was read.
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.void))
  })

  /** Mails a link if an account has the address. The result and the duration are the same for every address. */
  const request = Effect.fn("ResetPassword.request")(function* ({ client, email }: ResetRequest) {
    yield* Effect.flatMap(rateLimiter.acquireSlots([`reset/${client}`], maxRequests, window), refuse)
    const ofEmail = `reset-mail/${keyedHash.of("email", emailKey(email))}`
    const mail = Effect.gen(function* () {
      const { granted } = yield* rateLimiter.acquireSlots([ofEmail], maxMails, window)
      if (granted) yield* mailTo(email)
    })
    yield* Effect.all([mail, Effect.sleep(answerTime)], { concurrency: "unbounded", discard: true })
  })

  /** Returns the account of a token and the time of its issue. Fails if the token is unknown, used or expired. */
  const find = Effect.fnUntraced(function* (token: Redacted.Redacted, now: DateTime.Utc) {
    const issued = yield* links.find(purpose, token)
    yield* Effect.fromResult(refuseExpired(purpose, { issuedAt: issued.issuedAt, now }))
    return issued
  })

  /**
   * Sets the password, proves the address, and ends all sessions and other links of the account. A token works once. If no mail proved
   * the address before, also revokes the keys of the account.
   */
  const reset = Effect.fn("ResetPassword.reset")(function* ({ client, password, token }: Reset) {
    yield* passwords.refuseCommon(password)
    const { accountId } = yield* find(token, yield* DateTime.now)
    const passwordHash = yield* passwords.attempt(client, ({ hash }) => hash(password))
    yield* accounts
      .change(
        accountId,
        Effect.fnUntraced(function* (account, now) {
          // Checks again under the account's lock: of two concurrent uses of a token, one fails.
          const { issuedAt } = yield* find(token, now)
          const events = yield* Effect.fromResult(resetPassword(account, { issuedAt, now }))
          const inSameTransaction = () => Effect.andThen(logins.setPassword(accountId, passwordHash), links.removeOf(accountId))
          return { events, inSameTransaction, value: undefined }
        })
      )
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidToken({ purpose }))))
  })

  return { request, reset }
})

export class ResetPassword extends Context.Service<ResetPassword, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/login/ResetPassword"
) {
  static readonly layer = Layer.effect(ResetPassword, make)
}

/** Sets a new password with the token of a mail, without the old one. */
import { Context, DateTime, Duration, Effect, Layer, Option, type Redacted } from "effect"
import { InvalidToken, refuseExpired, requestPasswordReset, resetPassword } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { emailKey, isEmailAddress } from "#domain/email/EmailAddress.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { CredentialReader } from "#domain/login/CredentialReader.ts"
import { EmailLinks } from "#domain/email/EmailLinks.ts"
import { EmailTokens } from "#domain/accounts/EmailTokens.ts"
import { CommonPasswords, Passwords } from "#domain/login/Passwords.ts"
import { orTooMany, RateLimiter } from "#domain/callers/RateLimiter.ts"

/** `client` is a keyed hash of the client's address, for the limit. */
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

/** Limits in 24 hours on requests per client, and on mails per address. Beyond the latter, the answer stays the same. */
const maxRequests = 20
const maxMails = 5
const window = Duration.hours(24)
/** Longer than the work, so that the response time does not reveal whether the address is known. */
const answerTime = "500 millis"

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const commonPasswords = yield* CommonPasswords
  const keyedHash = yield* KeyedHash
  const links = yield* EmailLinks
  const logins = yield* CredentialReader
  const passwords = yield* Passwords
  const rateLimiter = yield* RateLimiter
  const tokens = yield* EmailTokens

  const refuse = orTooMany(`At most ${maxRequests} requests to reset a password in 24 hours from one address`)

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
      // The account was closed meanwhile.
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.void))
  })

  /** Mails a link if an account with this address has a login. Result and duration are the same without one. */
  const request = Effect.fn("ResetPassword.request")(function* ({ client, email }: ResetRequest) {
    yield* Effect.flatMap(rateLimiter.acquireSlot(`reset/${client}`, maxRequests, window), refuse)
    const ofEmail = `reset-mail/${keyedHash.of("email", emailKey(email))}`
    const mail = Effect.gen(function* () {
      const { granted } = yield* rateLimiter.acquireSlot(ofEmail, maxMails, window)
      if (granted) yield* mailTo(email)
    })
    yield* Effect.all([mail, Effect.sleep(answerTime)], { concurrency: "unbounded", discard: true })
  })

  /** Rejects a token that is unknown, used or expired. */
  const find = Effect.fnUntraced(function* (token: Redacted.Redacted, now: DateTime.Utc) {
    const issued = yield* links.find(purpose, token)
    yield* Effect.fromResult(refuseExpired(purpose, { issuedAt: issued.issuedAt, now }))
    return issued
  })

  /** Sets the password, verifies the address, and ends all sessions and other links of the account. A token works once. */
  const reset = Effect.fn("ResetPassword.reset")(function* ({ client, password, token }: Reset) {
    yield* commonPasswords.refuse(password)
    const { accountId } = yield* find(token, yield* DateTime.now)
    const passwordHash = yield* passwords.attempt(client, ({ hash }) => hash(password))
    yield* accounts
      .change(
        accountId,
        Effect.fnUntraced(function* (account, now) {
          // Runs under the account's lock: of two concurrent uses of a token, one fails.
          const { issuedAt } = yield* find(token, now)
          const events = yield* Effect.fromResult(resetPassword(account, { issuedAt, now }))
          const inSameTransaction = () => Effect.andThen(logins.setPassword(accountId, passwordHash), tokens.removeOf(accountId))
          return { events, inSameTransaction, value: undefined }
        })
      )
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidToken({ purpose }))))
  })

  return { request, reset }
})

export class ResetPassword extends Context.Service<ResetPassword, Effect.Success<typeof make>>()(
  "vatproof/domain/login/ResetPassword"
) {
  static readonly layer = Layer.effect(ResetPassword, make)
}

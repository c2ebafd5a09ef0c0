/** A new password for the reader of a mail, who need not know the old one. */
import { Context, DateTime, Duration, Effect, Layer, Option, type Redacted } from "effect"
import { InvalidToken, refuseExpired, requestPasswordReset, resetPassword } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { emailKey, isEmailAddress } from "#domain/email/EmailAddress.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { CredentialReader } from "#domain/login/CredentialReader.ts"
import { EmailLinks } from "#domain/email/EmailLinks.ts"
import { EmailTokens } from "#domain/accounts/EmailTokens.ts"
import { CommonPasswords, Passwords } from "#domain/login/Passwords.ts"
import { orTooMany, RateLimits } from "#domain/callers/RateLimits.ts"

/** `client` names who asks, for the limit's sake: a keyed hash of the address. */
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

/** Requests of a client, and mails to an address, in 24 hours. A request beyond the latter gets the usual answer. */
const maxRequests = 20
const maxMails = 5
const window = Duration.hours(24)
/** Longer than the work takes, so that the time of the answer does not tell whether the address is known. */
const answerTime = "500 millis"

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const commonPasswords = yield* CommonPasswords
  const keyedHash = yield* KeyedHash
  const links = yield* EmailLinks
  const logins = yield* CredentialReader
  const passwords = yield* Passwords
  const rateLimits = yield* RateLimits
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
      // It was closed meanwhile.
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.void))
  })

  /** Has a link mailed if an account of this address has logins. The outcome and its time are the same if there is none. */
  const request = Effect.fn("ResetPassword.request")(function* ({ client, email }: ResetRequest) {
    yield* Effect.flatMap(rateLimits.acquireSlot(`reset/${client}`, maxRequests, window), refuse)
    const ofEmail = `reset-mail/${keyedHash.of("email", emailKey(email))}`
    const mail = Effect.gen(function* () {
      const { granted } = yield* rateLimits.acquireSlot(ofEmail, maxMails, window)
      if (granted) yield* mailTo(email)
    })
    yield* Effect.all([mail, Effect.sleep(answerTime)], { concurrency: "unbounded", discard: true })
  })

  /** Refuses a token that is unknown, used or expired. */
  const find = Effect.fnUntraced(function* (token: Redacted.Redacted, now: DateTime.Utc) {
    const issued = yield* links.find(purpose, token)
    yield* Effect.fromResult(refuseExpired(purpose, { issuedAt: issued.issuedAt, now }))
    return issued
  })

  /** Sets the password, confirms the address, and ends all logins and all other links of the account. A token is good once. */
  const reset = Effect.fn("ResetPassword.reset")(function* ({ client, password, token }: Reset) {
    yield* commonPasswords.refuse(password)
    const { accountId } = yield* find(token, yield* DateTime.now)
    const passwordHash = yield* passwords.attempt(client, ({ hash }) => hash(password))
    yield* accounts
      .change(
        accountId,
        Effect.fnUntraced(function* (account, now) {
          // Under the lock of the account: of two who use the token at the same time, one finds it gone.
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

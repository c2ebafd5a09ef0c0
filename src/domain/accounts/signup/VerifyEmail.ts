/** Verifies an email address with the token of a mail (rule 47). */
import { Context, DateTime, Effect, Layer, Option, type Redacted } from "effect"
import { InvalidToken, noAccount, verifyEmail } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import { EmailLinks } from "#domain/accounts/email/EmailLinks.ts"

const purpose = "verify_email"

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const links = yield* EmailLinks
  const logins = yield* CredentialStore

  /**
   * Verifies the email address of the token's account. A token works once. A newer signup removes the token, so `verify` reads the token again
   * under the account's lock. `hasPassword` is false if signups with different passwords have removed the password (SignUp).
   */
  const verify = Effect.fn("VerifyEmail.verify")(function* (token: Redacted.Redacted) {
    const { accountId } = yield* links.find(purpose, token)
    return yield* accounts
      .change(
        accountId,
        Effect.fnUntraced(function* (account, now) {
          const { issuedAt } = yield* links.find(purpose, token)
          const event = yield* Effect.fromResult(verifyEmail(account, { issuedAt, now }))
          const login = Option.getOrNull(yield* logins.byAccount(accountId))
          const hasPassword = login?.passwordHash !== null
          return { events: [event], inSameTransaction: () => links.removeOf(accountId, purpose), value: { hasPassword } }
        })
      )
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidToken({ purpose }))))
  })

  /**
   * Checks the token of a HEAD request and leaves it unused. Can fail with the same errors as `verify`. Otherwise returns
   * `hasPassword: true`, the usual result of `verify`.
   */
  const check = Effect.fn("VerifyEmail.check")(function* (token: Redacted.Redacted) {
    const { accountId, issuedAt } = yield* links.find(purpose, token)
    yield* Effect.fromResult(verifyEmail(noAccount(accountId), { issuedAt, now: yield* DateTime.now }))
    return { hasPassword: true }
  })

  return { verify, check }
})

export class VerifyEmail extends Context.Service<VerifyEmail, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/signup/VerifyEmail"
) {
  static readonly layer = Layer.effect(VerifyEmail, make)
}

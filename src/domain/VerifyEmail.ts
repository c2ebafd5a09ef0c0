/** Confirming an email address with the token of a mail (INTERFACE 4.7, DECISIONS 31). */
import { Context, DateTime, Effect, Layer, Option, Redacted, Result } from "effect"
import { InvalidToken, noAccount, verifyEmail } from "#domain/Account.ts"
import { AccountStore } from "#domain/AccountStore.ts"
import { Hashing } from "#domain/Hashing.ts"
import { VerificationTokens } from "#domain/VerificationTokens.ts"

/** What is not of this form was never issued. */
const form = /^[\da-f]{64}$/u

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const hashing = yield* Hashing
  const tokens = yield* VerificationTokens

  const find = Effect.fnUntraced(function* (token: Redacted.Redacted) {
    const text = Redacted.value(token).toLowerCase()
    if (!form.test(text)) return yield* new InvalidToken({})
    const found = yield* tokens.find(hashing.sha256(text))
    return yield* Option.match(found, { onNone: () => Effect.fail(new InvalidToken({})), onSome: Effect.succeed })
  })

  /** A token is good once. */
  const verify = Effect.fn("VerifyEmail.verify")(function* (token: Redacted.Redacted) {
    const { accountId, issuedAt } = yield* find(token)
    yield* accounts
      .change(accountId, (account, now) =>
        Effect.fromResult(
          Result.map(verifyEmail(account, { issuedAt, now }), (event) => ({
            events: [event],
            alongside: () => tokens.removeOf(accountId),
            value: undefined
          }))
        )
      )
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidToken({}))))
  })

  /** What `verify` would say now; changes nothing. */
  const look = Effect.fn("VerifyEmail.look")(function* (token: Redacted.Redacted) {
    const { accountId, issuedAt } = yield* find(token)
    yield* Effect.fromResult(verifyEmail(noAccount(accountId), { issuedAt, now: yield* DateTime.now }))
  })

  return { verify, look }
})

export class VerifyEmail extends Context.Service<VerifyEmail, Effect.Success<typeof make>>()("vatproof/domain/VerifyEmail") {
  static readonly layer = Layer.effect(VerifyEmail, make)
}

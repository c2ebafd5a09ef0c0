/** Signing up with an email address and a password (rules 43, 46-49). */
import { Context, type DateTime, Duration, Effect, Layer, Option, RcMap, type Redacted, Semaphore } from "effect"
import { AccountSignedUp, EmailVerificationRequested, EmailVerified, requestVerification } from "#domain/accounts/Account.ts"
import { AccessTokens } from "#domain/accounts/AccessTokens.ts"
import { AccountStore, EmailTaken } from "#domain/accounts/AccountStore.ts"
import { DisposableDomains, DisposableEmail, domainsOf } from "#domain/email/EmailAddress.ts"
import { type StoredLogin, CredentialReader } from "#domain/login/CredentialReader.ts"
import { EmailLinks } from "#domain/email/EmailLinks.ts"
import { EmailTokens } from "#domain/accounts/EmailTokens.ts"
import { CommonPasswords, Passwords, type PasswordWork } from "#domain/login/Passwords.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { orTooMany, RateLimits } from "#domain/callers/RateLimits.ts"

/** `client` names who asks, for the limit's sake: a keyed hash of the address. A `browser` has a person who reads mails. */
export interface Signup {
  readonly client: string
  readonly email: string
  readonly password: Redacted.Redacted
  readonly browser: boolean
}

/** `token` is for those who need not confirm an address: the others get it by logging in once they have. */
export interface SignedUp {
  readonly accountId: string
  readonly token: Redacted.Redacted | null
}

/** Browsers have said Mozilla/ since 1994; programs say their own name or nothing (rule 49). */
export const isBrowser = (userAgent: string | undefined): boolean => userAgent?.includes("Mozilla/") ?? false

const window = Duration.hours(24)
const make = Effect.fnUntraced(function* (perDay: number) {
  const accessTokens = yield* AccessTokens
  const accounts = yield* AccountStore
  const disposable = yield* DisposableDomains
  const commonPasswords = yield* CommonPasswords
  const links = yield* EmailLinks
  const logins = yield* CredentialReader
  const passwords = yield* Passwords
  const crypto = yield* Crypto
  const rateLimits = yield* RateLimits
  const tokens = yield* EmailTokens
  const turns = yield* RcMap.make({ lookup: (_client: string) => Semaphore.make(1) })

  const refuse = orTooMany(`At most ${perDay} signups in 24 hours from one address`)

  /**
   * A sign-up with an address that is not confirmed. With a new mail the newest sign-up wins: its password belongs to the mail's link, and
   * older links end. Without one the link of the last mail stays good, but if the passwords differ it gives neither of them: its reader may
   * be another person than the one who chose the first. A client has no more mails sent than it signs up.
   */
  const signUpAgain = Effect.fnUntraced(function* ({ client, email, password }: Signup, login: StoredLogin, work: PasswordWork) {
    const { accountId, passwordHash: known } = login
    const isSame = yield* work.matches(password, known)
    const passwordHash = isSame && known !== null ? known : yield* work.hash(password)
    const slots = [`reminder/${client}`]
    const { granted } = yield* rateLimits.checkSlots(slots, perDay, window)
    const send = Effect.fnUntraced(function* (now: DateTime.Utc) {
      yield* rateLimits.acquireSlots(slots, perDay, window)
      yield* logins.setPassword(accountId, passwordHash)
      yield* tokens.removeOf(accountId)
      yield* links.send("verify_email", { accountId, email }, now)
    })
    const contest = Effect.gen(function* () {
      const newest = Option.getOrNull(yield* logins.byAccount(accountId))
      if (!isSame || newest?.epoch !== login.epoch) yield* logins.setPassword(accountId, null)
    })
    yield* accounts
      .change(accountId, (account, now) => {
        const events = granted ? requestVerification(account, now) : []
        const inSameTransaction = account.verified ? () => Effect.void : events.length > 0 ? send : () => contest
        return Effect.succeed({ events, inSameTransaction, value: undefined })
      })
      // It was closed meanwhile.
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.void))
  })

  /**
   * A place is taken by the account that is made, not by the attempt: a refused attempt is no signup. Somebody who tries out addresses
   * runs out of slots all the same, by every address that is free. So a client's attempts come one after the other: of many at once all
   * would see that there is a place.
   */
  const signUp = Effect.fn("SignUp.signUp")(function* (signup: Signup) {
    const ofClient = yield* RcMap.get(turns, signup.client)
    return yield* passwords.attempt(signup.client, (work) => ofClient.withPermit(attempt(signup, work)))
  }, Effect.scoped)

  const attempt = Effect.fnUntraced(function* (signup: Signup, work: PasswordWork) {
    const { browser, client, email, password } = signup
    if (domainsOf(email).some(disposable.has)) return yield* new DisposableEmail({})
    yield* commonPasswords.refuse(password)
    const slots = [`signup/${client}`]
    yield* Effect.flatMap(rateLimits.checkSlots(slots, perDay, window), refuse)
    const taken = yield* logins.byEmail(email)
    if (Option.isSome(taken)) {
      if (!taken.value.verified) yield* signUpAgain(signup, taken.value, work)
      return yield* new EmailTaken({ bySignup: true })
    }
    const passwordHash = yield* work.hash(password)
    const accountId = crypto.uuidV7()
    const verification = browser
      ? EmailVerificationRequested.make({ account_id: accountId })
      : EmailVerified.make({ account_id: accountId, by: "non_browser" })
    const inSameTransaction = Effect.fnUntraced(function* (at: DateTime.Utc) {
      yield* Effect.flatMap(rateLimits.acquireSlots(slots, perDay, window), refuse)
      if (browser) yield* links.send("verify_email", { accountId, email }, at)
    })
    const facts = [AccountSignedUp.make({ account_id: accountId, plan: "free" }), verification] as const
    yield* accounts.create(accountId, { email, agentId: null, passwordHash }, facts, inSameTransaction)
    return { accountId, token: browser ? null : yield* accessTokens.issue({ accountId, epoch: 0 }) } satisfies SignedUp
  })

  return { signUp }
})

export class SignUp extends Context.Service<SignUp, Effect.Success<ReturnType<typeof make>>>()("vatproof/domain/signup/SignUp") {
  /** `perDay` accounts may be made from one client address in 24 hours. */
  static readonly layer = (perDay: number) => Layer.effect(SignUp, make(perDay))
}

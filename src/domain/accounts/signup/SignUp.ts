/** Signs up with an email address and a password (rules 43, 46-49). */
import { Context, type DateTime, Duration, Effect, Layer, Option, RcMap, type Redacted, Semaphore } from "effect"
import { requestVerification } from "#domain/accounts/Account.ts"
import { AccountSignedUp, EmailVerificationRequested, EmailVerified } from "#domain/accounts/AccountEvents.ts"
import { AccessTokens } from "#domain/accounts/AccessTokens.ts"
import { AccountStore, EmailTaken } from "#domain/accounts/AccountStore.ts"
import { DisposableDomains, DisposableEmail, domainsOf } from "#domain/accounts/email/EmailAddress.ts"
import { type StoredLogin, CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import { EmailLinks } from "#domain/accounts/email/EmailLinks.ts"
import { Passwords, type PasswordWork } from "#domain/accounts/login/Passwords.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { orTooMany, RateLimiter } from "#domain/callers/RateLimiter.ts"

/**
 * `client` is a keyed hash of the client's IP address, for the limit. If `browser` is true, the user must verify the email
 * address by a mail.
 */
export interface Signup {
  readonly client: string
  readonly email: string
  readonly password: Redacted.Redacted
  readonly browser: boolean
}

/** `token` is an access token for clients that need no verification. It is null for browsers: their users log in after the verification. */
export interface SignedUp {
  readonly accountId: string
  readonly token: Redacted.Redacted | null
}

/** Returns true for the User-Agent of a browser. All browsers send Mozilla/; programs send their own name or nothing (rule 49). */
export const isBrowser = (userAgent: string | undefined): boolean => userAgent?.includes("Mozilla/") ?? false

const window = Duration.hours(24)
const make = Effect.fnUntraced(function* (perDay: number) {
  const accessTokens = yield* AccessTokens
  const accounts = yield* AccountStore
  const disposable = yield* DisposableDomains
  const links = yield* EmailLinks
  const logins = yield* CredentialStore
  const passwords = yield* Passwords
  const crypto = yield* Crypto
  const rateLimiter = yield* RateLimiter
  const semaphores = yield* RcMap.make({ lookup: (_client: string) => Semaphore.make(1) })

  const refuse = orTooMany(`At most ${perDay} signups in 24 hours from one IP address`)

  /**
   * Handles another signup with an unverified email address. If the signups have different passwords, the stored password is removed: one
   * of them may be a stranger's, and the reader of a mail cannot tell which. The owner then resets the password. A new mail replaces
   * the last one.
   */
  const signUpAgain = Effect.fnUntraced(function* ({ client, email, password }: Signup, login: StoredLogin, work: PasswordWork) {
    const { accountId } = login
    const isSame = yield* work.matches(password, login.passwordHash)
    const slots = [`reminder/${client}`]
    const { granted } = yield* rateLimiter.checkSlots(slots, perDay, window)
    // Removes the stored password if this signup, or a concurrent one, has another password.
    const removeContested = Effect.gen(function* () {
      const newest = Option.getOrNull(yield* logins.byAccount(accountId))
      if (!isSame || newest?.epoch !== login.epoch) yield* logins.setPassword(accountId, null)
    })
    const send = Effect.fnUntraced(function* (now: DateTime.Utc) {
      yield* rateLimiter.acquireSlots(slots, perDay, window)
      yield* links.removeOf(accountId)
      yield* links.send("verify_email", { accountId, email }, now)
    })
    yield* accounts
      .change(accountId, (account, now) => {
        const events = granted ? requestVerification(account, now) : []
        const sendIfDue = events.length > 0 ? send(now) : Effect.void
        const inSameTransaction = () => (account.verified ? Effect.void : Effect.andThen(removeContested, sendIfDue))
        return Effect.succeed({ events, inSameTransaction, value: undefined })
      })
      // The account was closed after its login was read.
      .pipe(Effect.catchTag("NoSuchAccount", () => Effect.void))
  })

  /**
   * Creates an account with a login. Only a created account counts towards the client's limit. A client that probes for existing
   * email addresses therefore uses up one account of its limit with each unused address. The attempts of a client run one after
   * the other, because concurrent attempts could all pass the check of the limit.
   */
  const signUp = Effect.fn("SignUp.signUp")(function* (signup: Signup) {
    const semaphore = yield* RcMap.get(semaphores, signup.client)
    return yield* passwords.attempt(signup.client, (work) => semaphore.withPermit(attempt(signup, work)))
  }, Effect.scoped)

  const attempt = Effect.fnUntraced(function* (signup: Signup, work: PasswordWork) {
    const { browser, client, email, password } = signup
    if (domainsOf(email).some(disposable.has)) return yield* new DisposableEmail({})
    yield* passwords.refuseCommon(password)
    const slots = [`signup/${client}`]
    yield* Effect.flatMap(rateLimiter.checkSlots(slots, perDay, window), refuse)
    const refuseTaken = Effect.fnUntraced(function* (existing: Option.Option<StoredLogin>) {
      if (Option.isSome(existing) && !existing.value.verified) yield* signUpAgain(signup, existing.value, work)
      return yield* new EmailTaken({ bySignup: true })
    })
    const existing = yield* logins.byEmail(email)
    if (Option.isSome(existing)) return yield* refuseTaken(existing)
    const passwordHash = yield* work.hash(password)
    const accountId = crypto.uuidV7()
    const verification = browser
      ? EmailVerificationRequested.make({ account_id: accountId })
      : EmailVerified.make({ account_id: accountId, by: "non_browser" })
    const inSameTransaction = Effect.fnUntraced(function* (at: DateTime.Utc) {
      yield* Effect.flatMap(rateLimiter.acquireSlots(slots, perDay, window), refuse)
      if (browser) yield* links.send("verify_email", { accountId, email }, at)
    })
    const facts = [AccountSignedUp.make({ account_id: accountId, plan: "free" }), verification] as const
    yield* accounts
      .create(accountId, { email, agentId: null, passwordHash }, facts, inSameTransaction)
      // A concurrent signup has created the account.
      .pipe(Effect.catchTag("EmailTaken", () => Effect.flatMap(logins.byEmail(email), refuseTaken)))
    return { accountId, token: browser ? null : yield* accessTokens.issue({ accountId, epoch: 0 }) } satisfies SignedUp
  })

  return { signUp }
})

export class SignUp extends Context.Service<SignUp, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/accounts/signup/SignUp"
) {
  /** `perDay` is the maximum number of accounts per client IP address in 24 hours. */
  static readonly layer = (perDay: number) => Layer.effect(SignUp, make(perDay))
}

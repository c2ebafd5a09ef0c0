/** Signing up with an email address and a password (INTERFACE 3 and 4.6, DECISIONS 15, 30-32). */
import { Context, type DateTime, Duration, Effect, Layer, Option, RcMap, type Redacted, Semaphore } from "effect"
import { AccountSignedUp, EmailVerificationRequested, EmailVerified, requestVerification } from "#domain/Account.ts"
import { AccessTokens } from "#domain/AccessTokens.ts"
import { AccountStore, EmailTaken } from "#domain/AccountStore.ts"
import { DisposableDomains, DisposableEmail, domainsOf } from "#domain/EmailAddress.ts"
import { Logins } from "#domain/Logins.ts"
import { Passwords, type PasswordWork } from "#domain/Passwords.ts"
import { Randomness } from "#domain/Randomness.ts"
import { orTooMany, RateLimits } from "#domain/RateLimits.ts"
import { VerificationRequests } from "#domain/VerificationRequests.ts"

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

/** Browsers have said Mozilla/ since 1994; programs say their own name or nothing (DECISIONS 32). */
export const isBrowser = (userAgent: string | undefined): boolean => userAgent?.includes("Mozilla/") ?? false

const window = Duration.hours(24)
const make = Effect.fnUntraced(function* (perDay: number) {
  const accessTokens = yield* AccessTokens
  const accounts = yield* AccountStore
  const disposable = yield* DisposableDomains
  const logins = yield* Logins
  const passwords = yield* Passwords
  const random = yield* Randomness
  const rateLimits = yield* RateLimits
  const verificationRequests = yield* VerificationRequests
  const turns = yield* RcMap.make({ lookup: (_client: string) => Semaphore.make(1) })

  const refuse = orTooMany(`At most ${perDay} signups in 24 hours from one address`)

  /** Whoever signs up again without having confirmed the address may have lost the mail. A client has no more of them sent than it signs up. */
  const remind = Effect.fnUntraced(function* (client: string, accountId: string, email: string) {
    const places = [`reminder/${client}`]
    const { granted } = yield* rateLimits.lookForPlaces(places, perDay, window)
    if (!granted) return
    yield* accounts
      .change(accountId, (account, now) => {
        const events = requestVerification(account, now)
        const send = Effect.andThen(
          rateLimits.takePlaces(places, perDay, window),
          verificationRequests.send(accountId, email, now)
        )
        const alongside = () => (events.length === 0 ? Effect.void : send)
        return Effect.succeed({ events, alongside, value: undefined })
      })
      // Accounts are never removed, and this one was just found.
      .pipe(Effect.catchTag("NoSuchAccount", Effect.die))
  })

  /**
   * A place is taken by the account that is made, not by the attempt: a refused attempt is no signup. Somebody who tries out addresses
   * runs out of places all the same, by every address that is free. So a client's attempts come one after the other: of many at once all
   * would see that there is a place.
   */
  const signUp = Effect.fn("SignUp.signUp")(function* (signup: Signup) {
    const ofClient = yield* RcMap.get(turns, signup.client)
    return yield* passwords.attempt(signup.client, (work) => ofClient.withPermit(attempt(signup, work)))
  }, Effect.scoped)

  const attempt = Effect.fnUntraced(function* ({ browser, client, email, password }: Signup, { hash }: PasswordWork) {
    if (domainsOf(email).some(disposable.has)) return yield* new DisposableEmail({})
    const places = [`signup/${client}`]
    yield* Effect.flatMap(rateLimits.lookForPlaces(places, perDay, window), refuse)
    const taken = yield* logins.byEmail(email)
    if (Option.isSome(taken)) {
      if (!taken.value.verified) yield* remind(client, taken.value.accountId, email)
      return yield* new EmailTaken({ bySignup: true })
    }
    const passwordHash = yield* hash(password)
    const accountId = yield* random.uuidV7
    const verification = browser
      ? EmailVerificationRequested.make({ account_id: accountId })
      : EmailVerified.make({ account_id: accountId, by: "non_browser" })
    const alongside = Effect.fnUntraced(function* (at: DateTime.Utc) {
      yield* Effect.flatMap(rateLimits.takePlaces(places, perDay, window), refuse)
      if (browser) yield* verificationRequests.send(accountId, email, at)
    })
    const facts = [AccountSignedUp.make({ account_id: accountId, plan: "free" }), verification] as const
    yield* accounts.create(accountId, { email, agentId: null, passwordHash }, facts, alongside)
    return { accountId, token: browser ? null : yield* accessTokens.issue(accountId) } satisfies SignedUp
  })

  return { signUp }
})

export class SignUp extends Context.Service<SignUp, Effect.Success<ReturnType<typeof make>>>()("vatproof/domain/SignUp") {
  /** `perDay` accounts may be made from one client address in 24 hours. */
  static readonly layer = (perDay: number) => Layer.effect(SignUp, make(perDay))
}

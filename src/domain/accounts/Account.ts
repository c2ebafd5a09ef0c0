/**
 * Accounts with their plan and keys. Contact data is kept outside of the events, because it must be erasable. Decisions are plain
 * functions: the state is folded from the events of the account's stream; time and ids come with the command.
 */
import { DateTime, Duration, Result, Schema } from "effect"
import {
  ApiKeyClaimed,
  ApiKeyIssued,
  ApiKeyReleased,
  ApiKeyRevoked,
  ApiKeyRotated,
  type KeyRevoker
} from "#domain/accounts/ApiKey.ts"
import {
  AccountRegistered,
  AccountSignedUp,
  EmailVerificationRequested,
  EmailVerified,
  PasswordResetRequested,
  PasswordChanged,
  PlanChanged,
  AccountClosed
} from "#domain/accounts/AccountEvents.ts"
import type * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { EmailPurpose } from "#domain/accounts/EmailTokens.ts"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import { billingPeriod } from "#domain/callers/Usage.ts"

/** A key of an account. `prefix` is its public id; `secrets` are all it ever had, the newest last. */
export interface AccountKey {
  readonly keyId: string
  readonly prefix: string
  readonly secrets: ReadonlyArray<{ readonly prefix: string; readonly at: DateTime.Utc }>
  readonly revoked: boolean
}

/** The state that decisions about an account need. */
export interface AccountState {
  readonly accountId: string
  /** `perMonth` is set for this account alone; null means the plan's. */
  readonly plan: PlanName
  readonly perMonth: number | null
  /** True for accounts with a password: only they have an address to verify and a login. */
  readonly signedUp: boolean
  readonly verified: boolean
  readonly closed: boolean
  readonly verificationRequestedAt: DateTime.Utc | null
  readonly passwordResetRequestedAt: DateTime.Utc | null
  readonly keys: ReadonlyArray<AccountKey>
}

/** The state of an account without events. */
export const noAccount = (accountId: string): AccountState => ({
  accountId,
  plan: "free",
  perMonth: null,
  signedUp: false,
  verified: false,
  closed: false,
  verificationRequestedAt: null,
  passwordResetRequestedAt: null,
  keys: []
})

/** Returns the state after one more event, which happened at `at`. */
export const evolve = (state: AccountState, event: DomainEvent.DomainEvent, at: DateTime.Utc): AccountState => {
  switch (event.type) {
    case AccountRegistered.type:
      return { ...state, plan: AccountRegistered.read(event).plan, verified: true }
    case AccountSignedUp.type:
      return { ...state, plan: AccountSignedUp.read(event).plan, signedUp: true }
    case PlanChanged.type: {
      const { per_month, plan } = PlanChanged.read(event)
      return { ...state, plan, perMonth: per_month }
    }
    case AccountClosed.type:
      return { ...state, closed: true }
    case EmailVerificationRequested.type:
      return { ...state, verificationRequestedAt: at }
    case PasswordResetRequested.type:
      return { ...state, passwordResetRequestedAt: at }
    case EmailVerified.type:
      return { ...state, verified: true }
    case ApiKeyIssued.type:
      return withKey(state, ApiKeyIssued.read(event), at)
    case ApiKeyClaimed.type:
      return withKey(state, ApiKeyClaimed.read(event), at)
    case ApiKeyReleased.type: {
      const { key_id } = ApiKeyReleased.read(event)
      return { ...state, keys: state.keys.filter(({ keyId }) => keyId !== key_id) }
    }
    case ApiKeyRotated.type: {
      const { key_id, prefix } = ApiKeyRotated.read(event)
      const rotated = (key: AccountKey) => ({ ...key, prefix, secrets: [...key.secrets, { prefix, at }] })
      return { ...state, keys: state.keys.map((key) => (key.keyId === key_id ? rotated(key) : key)) }
    }
    case ApiKeyRevoked.type: {
      const { key_id } = ApiKeyRevoked.read(event)
      return { ...state, keys: state.keys.map((key) => (key.keyId === key_id ? { ...key, revoked: true } : key)) }
    }
    default:
      return state
  }
}

const withKey = (
  state: AccountState,
  { key_id, prefix }: { key_id: string; prefix: string },
  at: DateTime.Utc
): AccountState => ({
  ...state,
  keys: [...state.keys, { keyId: key_id, prefix, secrets: [{ prefix, at }], revoked: false }]
})

/** Lifetime of a mail's token, and minimum interval between mails (rules 47, 48). */
export const tokenLifetimes: Readonly<Record<EmailPurpose, Duration.Duration>> = {
  verify_email: Duration.hours(24),
  reset_password: Duration.hours(1)
}
const betweenMails = Duration.minutes(10)

const Purpose = Schema.Literals(["verify_email", "reset_password"])

/** The token is unknown, was used, or was replaced by a newer one. */
export class InvalidToken extends Schema.TaggedError<InvalidToken>()("InvalidToken", { purpose: Purpose }) {
  override get message() {
    return this.purpose === "verify_email"
      ? "This verification token is unknown, was used already, or was replaced by a newer mail. If you confirmed your address before, log in"
      : "This token is unknown or was used already. Request a new mail: POST /v1/auth/password-reset"
  }
}

/** The token has exceeded its lifetime. */
export class TokenExpired extends Schema.TaggedError<TokenExpired>()("TokenExpired", { purpose: Purpose }) {
  override get message() {
    return this.purpose === "verify_email"
      ? "This verification token is older than 24 hours. Sign up again with the same address to get a new mail"
      : "This token is older than one hour. Request a new mail: POST /v1/auth/password-reset"
  }
}

/** The issue time of a token, and the time of its use. */
interface TokenUse {
  readonly issuedAt: DateTime.Utc
  readonly now: DateTime.Utc
}

/** Accepts a token up to and including the end of its lifetime. */
export const refuseExpired = (purpose: EmailPurpose, { issuedAt, now }: TokenUse): Result.Result<void, TokenExpired> =>
  DateTime.isGreaterThan(now, DateTime.addDuration(issuedAt, tokenLifetimes[purpose]))
    ? Result.fail(new TokenExpired({ purpose }))
    : Result.void

/** Verifies the address with the token of a mail. */
export const verifyEmail = (
  state: AccountState,
  use: TokenUse
): Result.Result<DomainEvent.DomainEvent, InvalidToken | TokenExpired> =>
  state.verified
    ? Result.fail(new InvalidToken({ purpose: "verify_email" }))
    : Result.map(refuseExpired("verify_email", use), () => EmailVerified.make({ account_id: state.accountId, by: "mail" }))

/** Sets a new password with the token of a mail. This also verifies the address, because the client can read its mail. */
export const resetPassword = (
  state: AccountState,
  use: TokenUse
): Result.Result<ReadonlyArray<DomainEvent.DomainEvent>, TokenExpired> =>
  Result.map(refuseExpired("reset_password", use), () => {
    const account_id = state.accountId
    const verified = state.verified ? [] : [EmailVerified.make({ account_id, by: "mail" })]
    return [...verified, PasswordChanged.make({ account_id, by: "mail" })]
  })

const mayMail = (last: DateTime.Utc | null, now: DateTime.Utc) =>
  last === null || DateTime.isGreaterThanOrEqualTo(now, DateTime.addDuration(last, betweenMails))

/** Requests a mail to set a new password, for an account with a login. Returns no event if the last mail is too recent. */
export const requestPasswordReset = (state: AccountState, now: DateTime.Utc): ReadonlyArray<DomainEvent.DomainEvent> =>
  state.signedUp && mayMail(state.passwordResetRequestedAt, now)
    ? [PasswordResetRequested.make({ account_id: state.accountId })]
    : []

/** Requests another verification mail for an unverified account. Returns no event if the last mail is too recent. */
export const requestVerification = (state: AccountState, now: DateTime.Utc): ReadonlyArray<DomainEvent.DomainEvent> =>
  state.signedUp && !state.verified && mayMail(state.verificationRequestedAt, now)
    ? [EmailVerificationRequested.make({ account_id: state.accountId })]
    : []

/** Limits on keys: the quota is metered per key, so an account could otherwise create quota (rule 42). */
const maxActiveKeys = 25
const maxIssuedPerPeriod = 50

/** Time does not lift this limit, but Retry-After needs a value: a minute is enough to revoke a key. */
const afterRevocationSeconds = 60

/** A candidate for a new key. */
export interface KeyCandidate {
  readonly keyId: string
  readonly prefix: string
  readonly sha256: string
}

/** Returns the error if the account may not get another secret in this period, otherwise null. */
const secretsRefusal = ({ keys }: AccountState, now: DateTime.Utc): RateLimitExceeded | null => {
  const period = billingPeriod(now)
  const drawn = keys.flatMap(({ secrets }) => secrets).filter(({ at }) => billingPeriod(at).name === period.name)
  if (drawn.length < maxIssuedPerPeriod) return null
  const message = `At most ${maxIssuedPerPeriod} API keys are issued to an account per calendar month (UTC), including revoked and rotated ones`
  const retryAfterSeconds = Math.ceil(Duration.toSeconds(DateTime.distance(now, period.end)))
  return new RateLimitExceeded({ message, retryAfterSeconds })
}

/** Returns the error if the account may not get another key, otherwise null. */
export const keyRefusal = (state: AccountState, now: DateTime.Utc): RateLimitExceeded | null => {
  if (state.keys.filter((key) => !key.revoked).length < maxActiveKeys) return secretsRefusal(state, now)
  const message = `An account has at most ${maxActiveKeys} active API keys: revoke one first`
  return new RateLimitExceeded({ message, retryAfterSeconds: afterRevocationSeconds })
}

/** Returns true if a secret of the account has or had the prefix. */
export const hasPrefix = ({ keys }: AccountState, prefix: string): boolean =>
  keys.some(({ secrets }) => secrets.some((secret) => secret.prefix === prefix))

/** Returns the first candidate whose prefix the account never used. */
const unusedOf = <Candidate extends KeyCandidate>(state: AccountState, candidates: ReadonlyArray<Candidate>) =>
  candidates.find(({ prefix }) => !hasPrefix(state, prefix))

/** Issues the first candidate whose prefix the account never used, not even in a revoked key. Null asks for other candidates. */
export const issueKey = <Candidate extends KeyCandidate>(
  state: AccountState,
  { candidates, now }: { readonly candidates: ReadonlyArray<Candidate>; readonly now: DateTime.Utc }
): Result.Result<{ readonly candidate: Candidate; readonly event: DomainEvent.DomainEvent } | null, RateLimitExceeded> => {
  const refusal = keyRefusal(state, now)
  if (refusal !== null) return Result.fail(refusal)
  const candidate = unusedOf(state, candidates)
  if (candidate === undefined) return Result.succeed(null)
  const event = ApiKeyIssued.make({
    account_id: state.accountId,
    key_id: candidate.keyId,
    prefix: candidate.prefix,
    key_sha256: candidate.sha256
  })
  return Result.succeed({ candidate, event })
}

/** The account has no key with that prefix. Clients are not told whether another account has one. */
export class ApiKeyNotFound extends Schema.TaggedError<ApiKeyNotFound>()("ApiKeyNotFound", {}) {
  override get message() {
    return "You have no API key with this id"
  }
}

/** How long the former secret of a rotated key stays valid, unless it ends at once. */
const rotationOverlap = Duration.hours(24)

/** Rotates a key to the first candidate with an unused prefix. Null asks for other candidates. */
export const rotateKey = <Candidate extends KeyCandidate>(
  state: AccountState,
  { candidates, keepsFormer, keyId, now }: Rotation<Candidate>
): Result.Result<Rotated<Candidate> | null, ApiKeyNotFound | RateLimitExceeded> => {
  if (!state.keys.some((key) => key.keyId === keyId && !key.revoked)) return Result.fail(new ApiKeyNotFound({}))
  const refusal = secretsRefusal(state, now)
  if (refusal !== null) return Result.fail(refusal)
  const candidate = unusedOf(state, candidates)
  if (candidate === undefined) return Result.succeed(null)
  const formerUntil = keepsFormer ? DateTime.addDuration(now, rotationOverlap) : null
  const { prefix, sha256: key_sha256 } = candidate
  const facts = { account_id: state.accountId, key_id: keyId, prefix, key_sha256, previous_until: formerUntil }
  return Result.succeed({ candidate, formerUntil, event: ApiKeyRotated.make(facts) })
}

interface Rotation<Candidate> {
  readonly keyId: string
  readonly candidates: ReadonlyArray<Candidate>
  readonly keepsFormer: boolean
  readonly now: DateTime.Utc
}

interface Rotated<Candidate> {
  readonly candidate: Candidate
  /** The end of the former secret's validity; null if it ended at once. */
  readonly formerUntil: DateTime.Utc | null
  readonly event: DomainEvent.DomainEvent
}

/**
 * Revokes the key with a prefix or id. Revoking a revoked key succeeds without a second event: DELETE is idempotent (RFC 9110,
 * 9.2.2), and 404 is for keys that do not exist or belong to another account.
 */
export const revokeKey = (
  state: AccountState,
  prefixOrId: string,
  by: KeyRevoker
): Result.Result<ReadonlyArray<DomainEvent.DomainEvent>, ApiKeyNotFound> => {
  const key = state.keys.find((key) => key.prefix === prefixOrId || key.keyId === prefixOrId)
  if (key === undefined) return Result.fail(new ApiKeyNotFound({}))
  if (key.revoked) return Result.succeed([])
  return Result.succeed([ApiKeyRevoked.make({ account_id: state.accountId, key_id: key.keyId, prefix: key.prefix, by })])
}

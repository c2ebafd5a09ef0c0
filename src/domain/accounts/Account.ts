/**
 * The state of an account, and the decisions about its address and password. `evolve` builds the state from the events of the account's
 * stream. No event has contact data, because contact data must be erasable.
 */
import { DateTime, Duration, Result, Schema } from "effect"
import {
  ApiKeyClaimed,
  ApiKeyIssued,
  ApiKeyReleased,
  ApiKeyRevoked,
  ApiKeyRotated,
  type KeyRevoker
} from "#domain/accounts/ApiKeyEvents.ts"
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
import type * as DomainEvent from "#domain/log/DomainEvent.ts"
import type { PlanName } from "#domain/callers/PlanLimits.ts"

/**
 * An API key of an account. `prefix` is the prefix of its current secret and its public id. `secrets` lists the prefixes of all
 * its secrets, newest last.
 */
export interface AccountKey {
  readonly keyId: string
  readonly prefix: string
  readonly secrets: ReadonlyArray<{ readonly prefix: string; readonly at: DateTime.Utc }>
  readonly revoked: boolean
}

/** The state that decisions about an account need. */
export interface AccountState {
  readonly accountId: string
  readonly plan: PlanName
  /** The limit that the operator set for this account; null means the limit of the plan. */
  readonly perMonth: number | null
  /** True for an account of POST /v1/auth/signup, and for a registered one whose password was set by a mail to its address. */
  readonly hasLogin: boolean
  readonly verified: boolean
  /** True if a mail proved that the owner reads the address. A signup by a program is verified, but proves nothing. */
  readonly proven: boolean
  readonly closed: boolean
  readonly verificationRequestedAt: DateTime.Utc | null
  readonly passwordResetRequestedAt: DateTime.Utc | null
  readonly keys: ReadonlyArray<AccountKey>
}

/** Returns the state of an account without events. */
export const noAccount = (accountId: string): AccountState => ({
  accountId,
  plan: "free",
  perMonth: null,
  hasLogin: false,
  verified: false,
  proven: false,
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
      return { ...state, plan: AccountSignedUp.read(event).plan, hasLogin: true }
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
      return { ...state, verified: true, proven: state.proven || EmailVerified.read(event).by === "mail" }
    case PasswordChanged.type:
      return { ...state, hasLogin: true }
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

/** Returns the events that revoke the active keys of an account. */
export const revokeKeys = (
  { accountId: account_id, keys }: AccountState,
  by: KeyRevoker
): ReadonlyArray<DomainEvent.DomainEvent> =>
  keys.filter(({ revoked }) => !revoked).map(({ keyId, prefix }) => ApiKeyRevoked.make({ account_id, key_id: keyId, prefix, by }))

/** The purpose of a mail and its link. */
const EmailPurpose = Schema.Literals(["verify_email", "reset_password"])
export type EmailPurpose = typeof EmailPurpose.Type

/** Lifetime of the token in a mail (rules 47, 48). */
export const tokenLifetimes: Readonly<Record<EmailPurpose, Duration.Duration>> = {
  verify_email: Duration.hours(24),
  reset_password: Duration.hours(1)
}
/** Minimum interval between two mails for one purpose to an account (rules 47, 48). */
const betweenMails = Duration.minutes(10)

/** The token is unknown, was used, or was replaced by a newer one. */
export class InvalidToken extends Schema.TaggedError<InvalidToken>()("InvalidToken", { purpose: EmailPurpose }) {
  override get message() {
    return this.purpose === "verify_email"
      ? "This verification token is unknown, was used already, or was replaced by a newer mail. If you confirmed your address before, log in"
      : "This token is unknown or was used already. Request a new mail: POST /v1/auth/password-reset"
  }
}

/** The token has exceeded its lifetime. */
export class TokenExpired extends Schema.TaggedError<TokenExpired>()("TokenExpired", { purpose: EmailPurpose }) {
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

/** Fails if the token is older than its lifetime. A token is still valid at the exact end of its lifetime. */
export const refuseExpired = (purpose: EmailPurpose, { issuedAt, now }: TokenUse): Result.Result<void, TokenExpired> =>
  DateTime.isGreaterThan(now, DateTime.addDuration(issuedAt, tokenLifetimes[purpose]))
    ? Result.fail(new TokenExpired({ purpose }))
    : Result.void

/**
 * Returns the event that verifies the address with the token of a mail. Fails with InvalidToken if the address is verified
 * already.
 */
export const verifyEmail = (
  state: AccountState,
  use: TokenUse
): Result.Result<DomainEvent.DomainEvent, InvalidToken | TokenExpired> =>
  state.verified
    ? Result.fail(new InvalidToken({ purpose: "verify_email" }))
    : Result.map(refuseExpired("verify_email", use), () => EmailVerified.make({ account_id: state.accountId, by: "mail" }))

/**
 * Returns the events that set a new password with the token of a mail. If no mail proved the address before, this token proves it: the
 * client reads the mails of this address. A stranger may have made the account, so its keys are revoked.
 */
export const resetPassword = (
  state: AccountState,
  use: TokenUse
): Result.Result<ReadonlyArray<DomainEvent.DomainEvent>, TokenExpired> =>
  Result.map(refuseExpired("reset_password", use), () => {
    const account_id = state.accountId
    const proof = state.proven ? [] : [EmailVerified.make({ account_id, by: "mail" }), ...revokeKeys(state, "owner")]
    return [...proof, PasswordChanged.make({ account_id, by: "mail" })]
  })

const mayMail = (last: DateTime.Utc | null, now: DateTime.Utc) =>
  last === null || DateTime.isGreaterThanOrEqualTo(now, DateTime.addDuration(last, betweenMails))

/** Requests a mail to set a new password. Returns no event if the last mail is too recent. */
export const requestPasswordReset = (state: AccountState, now: DateTime.Utc): ReadonlyArray<DomainEvent.DomainEvent> =>
  mayMail(state.passwordResetRequestedAt, now) ? [PasswordResetRequested.make({ account_id: state.accountId })] : []

/**
 * Requests another verification mail. Returns no event if the account is
 * verified or has no login, or if the last mail is too recent.
 */
export const requestVerification = (state: AccountState, now: DateTime.Utc): ReadonlyArray<DomainEvent.DomainEvent> =>
  state.hasLogin && !state.verified && mayMail(state.verificationRequestedAt, now)
    ? [EmailVerificationRequested.make({ account_id: state.accountId })]
    : []

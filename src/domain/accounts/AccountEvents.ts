/** The events of an account's stream, except the events of its API keys (ApiKeyEvents.ts). */
import { Schema } from "effect"
import { PlanName } from "#domain/callers/PlanLimits.ts"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

/** Returns the name of an account's stream. */
export const accountStream = (accountId: string): string => `account-${accountId}`

/**
 * An account was created by POST /v1/register. It has an API key, but no login before a mail to its address sets a
 * password. `agent_id_hash` is a keyed hash (64 hex digits) of the agent's id; null without an id.
 */
export const AccountRegistered = DomainEvent.define(
  "AccountRegistered",
  1,
  Schema.Struct({
    account_id: Schema.String,
    plan: PlanName,
    with_email: Schema.Boolean,
    agent_id_hash: Schema.NullOr(Schema.String)
  })
)

/**
 * An account was created by POST /v1/auth/signup, with email address and password. Its owner cannot log in before EmailVerified.
 */
export const AccountSignedUp = DomainEvent.define(
  "AccountSignedUp",
  1,
  Schema.Struct({ account_id: Schema.String, plan: PlanName })
)

/** A verification mail was requested for the account's address. */
export const EmailVerificationRequested = DomainEvent.define(
  "EmailVerificationRequested",
  1,
  Schema.Struct({ account_id: Schema.String })
)

/**
 * The email address of an account was verified: by the link in a mail, or
 * immediately because the client is not a browser (rule 49). A mail can prove the address of a verified account later.
 */
export const EmailVerified = DomainEvent.define(
  "EmailVerified",
  1,
  Schema.Struct({ account_id: Schema.String, by: Schema.Literals(["mail", "non_browser"]) })
)

/** A mail with a link to set a new password was requested. */
export const PasswordResetRequested = DomainEvent.define(
  "PasswordResetRequested",
  1,
  Schema.Struct({ account_id: Schema.String })
)

/**
 * The account has a new password, set with the link in a mail or by the owner with the old password. This ended all its sessions.
 * If the mail was the first proof of the address, EmailVerified and the revocation of all earlier keys stand before.
 */
export const PasswordChanged = DomainEvent.define(
  "PasswordChanged",
  1,
  Schema.Struct({ account_id: Schema.String, by: Schema.Literals(["mail", "owner"]) })
)

/**
 * The operator changed the account's plan. `per_month` is the limit per month for this account. If it is null, the plan's limit
 * applies.
 */
export const PlanChanged = DomainEvent.define(
  "PlanChanged",
  1,
  Schema.Struct({ account_id: Schema.String, plan: PlanName, per_month: Schema.NullOr(Schema.Int) })
)

/**
 * The account was closed permanently: its contact data is erased and its keys are
 * revoked. Its receipts are kept until their retention period ends.
 */
export const AccountClosed = DomainEvent.define("AccountClosed", 1, Schema.Struct({ account_id: Schema.String }))

/**
 * An operator read the contact data of accounts: of one account, or of a list (`account_id` is null). `accounts` is the number of accounts
 * shown.
 */
export const AccountsShown = DomainEvent.define(
  "AccountsShown",
  1,
  Schema.Struct({ account_id: Schema.NullOr(Schema.String), accounts: Schema.Int })
)

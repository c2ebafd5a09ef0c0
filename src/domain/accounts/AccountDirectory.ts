/** Accounts and keys as operators see them: with contact data and the usage of a month. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { BillingPeriod } from "#domain/callers/BillingPeriod.ts"

/** Ids of accounts and keys are UUIDs; other text is not an id. */
export const idForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu

/**
 * `ownPerMonth` is the limit that the operator set for this account, or null. `perMonth` is the limit that applies:
 * `ownPerMonth`, otherwise the limit of the plan.
 */
export interface AccountRecord {
  readonly accountId: string
  readonly email: string | null
  readonly agentId: string | null
  readonly plan: PlanName
  readonly perMonth: number
  readonly ownPerMonth: number | null
  readonly verifiedAt: DateTime.Utc | null
  readonly createdAt: DateTime.Utc
  readonly closedAt: DateTime.Utc | null
  readonly activeKeys: number
}

/**
 * `used` counts the validations of the requested month; `perMonth` is their limit. `label` is the owner's name for the key, ""
 * without a label.
 */
export interface KeyRecord {
  readonly keyId: string
  readonly prefix: string
  readonly accountId: string
  readonly email: string | null
  readonly label: string
  readonly plan: PlanName
  readonly issuedAt: DateTime.Utc
  readonly revokedAt: DateTime.Utc | null
  readonly used: number
  readonly perMonth: number
}

/** Selects at most `limit` accounts created before the account `before`, newest first. */
export interface AccountQuery {
  readonly plan: PlanName | null
  readonly before: string | null
  readonly limit: number
}

export class AccountNotFound extends Schema.TaggedError<AccountNotFound>()("AccountNotFound", { term: Schema.String }) {
  override get message() {
    return `There is no account with the email address, user_id or agent id "${this.term}"`
  }
}

/** Several accounts have this agent id, which agents choose themselves. `accountIds` lists the newest of these accounts. */
export class AccountNotUnique extends Schema.TaggedError<AccountNotUnique>()("AccountNotUnique", {
  term: Schema.String,
  accountIds: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Several accounts have the agent id "${this.term}": use a user_id, for example ${this.accountIds.join(", ")}`
  }
}

export class AccountDirectory extends Context.Service<
  AccountDirectory,
  {
    /** Finds by user_id, by case-insensitive email address, or by an agent id that only one account has. */
    readonly find: (term: string) => Effect.Effect<AccountRecord, AccountNotFound | AccountNotUnique | StoreUnavailable>
    readonly list: (query: AccountQuery) => Effect.Effect<ReadonlyArray<AccountRecord>, StoreUnavailable>
    /** Returns the keys of an account, newest first. */
    readonly keysOf: (accountId: string, period: BillingPeriod) => Effect.Effect<ReadonlyArray<KeyRecord>, StoreUnavailable>
    /** Returns a list with the key that has this id; an empty list for an unknown id. */
    readonly keyById: (keyId: string, period: BillingPeriod) => Effect.Effect<ReadonlyArray<KeyRecord>, StoreUnavailable>
    /** Returns at most `limit` keys that were used in a month, the busiest first. */
    readonly busiest: (period: BillingPeriod, limit: number) => Effect.Effect<ReadonlyArray<KeyRecord>, StoreUnavailable>
  }
>()("vatproof/domain/accounts/AccountDirectory") {}

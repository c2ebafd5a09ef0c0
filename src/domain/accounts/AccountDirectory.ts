/** Accounts and keys as an operator sees them: with contact data, and with what was used in a month. */
import { Context, type DateTime, type Effect, Schema } from "effect"
import type { PlanName } from "#domain/callers/Plan.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import type { BillingPeriod } from "#domain/callers/Usage.ts"

/** The ids of accounts and of keys are UUIDs; what looks otherwise is none of them. */
export const idForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu

/** `perMonth` is what counts for the account: its own number, else its plan's; `ownPerMonth` is its own number alone. */
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

/** `used` is of the month that was asked for, out of `perMonth`. `label` is what its owner calls the key, "" if nothing. */
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

/** Which accounts: those made before the account `before`, newest first, at most `limit`. */
export interface AccountQuery {
  readonly plan: PlanName | null
  readonly before: string | null
  readonly limit: number
}

export class AccountNotFound extends Schema.TaggedError<AccountNotFound>()("AccountNotFound", { asked: Schema.String }) {
  override get message() {
    return `There is no account with the email address, user_id or agent id "${this.asked}"`
  }
}

/** Agent ids are the agents' own choice, so several may have the same; `accountIds` are the newest of them. */
export class AccountNotUnique extends Schema.TaggedError<AccountNotUnique>()("AccountNotUnique", {
  asked: Schema.String,
  accountIds: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Several accounts have the agent id "${this.asked}": name one by its user_id, for example ${this.accountIds.join(", ")}`
  }
}

export class AccountDirectory extends Context.Service<
  AccountDirectory,
  {
    /** By user_id, by email address without regard to case, or by an agent id that only one account has. */
    readonly find: (asked: string) => Effect.Effect<AccountRecord, AccountNotFound | AccountNotUnique | StoreUnavailable>
    readonly list: (query: AccountQuery) => Effect.Effect<ReadonlyArray<AccountRecord>, StoreUnavailable>
    /** The keys of an account, newest first. */
    readonly keysOf: (accountId: string, period: BillingPeriod) => Effect.Effect<ReadonlyArray<KeyRecord>, StoreUnavailable>
    /** The key with an id; none is an empty list. */
    readonly keyById: (keyId: string, period: BillingPeriod) => Effect.Effect<ReadonlyArray<KeyRecord>, StoreUnavailable>
    /** The keys that were used in a month, the busiest first, at most `limit`. */
    readonly busiest: (period: BillingPeriod, limit: number) => Effect.Effect<ReadonlyArray<KeyRecord>, StoreUnavailable>
  }
>()("vatproof/domain/accounts/AccountDirectory") {}

/** Records logins in the log: each successful login, and counts of refused logins. */
import { Context, type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * Returns the name of the stream for the logins of a subject: an account, or a client (a keyed hash of its address) whose account
 * is unknown. Each replica counts a limited number of subjects one by one; all further subjects share the stream for null.
 */
export const loginStream = (subject: string | null): string => (subject === null ? "logins" : `logins-${subject}`)

/** A verified account logged in and received an access token. */
export const LoggedIn = DomainEvent.define("LoggedIn", 1, Schema.Struct({ account_id: Schema.String }))

/**
 * Numbers of logins on one replica in one hour that have no events of their own: refused logins, and successful logins of an
 * account that logs in too often. They belong to an account, or to a client (a keyed hash of its address) if the account is
 * unknown. If both are null, the numbers are the sum over the accounts and clients that the replica could not count one by one.
 */
export const LoginsCounted = DomainEvent.define(
  "LoginsCounted",
  1,
  Schema.Struct({
    account_id: Schema.NullOr(Schema.String),
    client: Schema.NullOr(Schema.String),
    since: Schema.DateTimeUtcFromString,
    refused: Schema.Int,
    succeeded: Schema.Int
  })
)

export class LoginLog extends Context.Service<
  LoginLog,
  {
    /** Records a successful login. */
    readonly succeeded: (accountId: string) => Effect.Effect<void, StoreUnavailable>
    /**
     * Counts a refused login; the event is recorded later. `client` is a keyed
     * hash of the address; `accountId` is null for an unknown account.
     */
    readonly refused: (client: string, accountId: string | null) => Effect.Effect<void>
  }
>()("vatproof/domain/login/LoginLog") {}

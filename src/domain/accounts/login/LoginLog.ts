/** Records logins in the log: each successful login, and counts of refused logins. */
import { Context, type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * Returns the name of the stream for the logins of a subject. The subject is an account or, if the account is unknown, a client
 * (a keyed hash of its IP address). Each replica counts the logins of a limited number of subjects separately. All other subjects
 * share the stream `logins` (`subject` is null).
 */
export const loginStream = (subject: string | null): string => (subject === null ? "logins" : `logins-${subject}`)

/** A verified account logged in and received an access token. */
export const LoggedIn = DomainEvent.define("LoggedIn", 1, Schema.Struct({ account_id: Schema.String }))

/**
 * Counts the logins on one replica in one hour that have no events of their own: refused logins, and successful logins of an
 * account that logs in too often. The logins belong to the account or, if the account is unknown, to the client (a keyed hash of
 * its IP address). If both are null, the numbers are sums over the accounts and clients that the replica could not count
 * separately.
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
     * Counts a refused login; an event with the count is recorded later. `client` is a keyed hash of the IP address; `accountId`
     * is null for an unknown account.
     */
    readonly refused: (client: string, accountId: string | null) => Effect.Effect<void>
  }
>()("vatproof/domain/accounts/login/LoginLog") {}

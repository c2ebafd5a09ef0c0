/** Records logins in the log: each successful one, and counts of refused ones. */
import { Context, type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * The stream of an account's logins, or of a client's logins with unknown accounts; null for clients beyond the tracking limit.
 */
export const loginStream = (subject: string | null): string => (subject === null ? "logins" : `logins-${subject}`)

/** A verified account logged in and received an access token. */
export const LoggedIn = DomainEvent.define("LoggedIn", 1, Schema.Struct({ account_id: Schema.String }))

/**
 * Counts of logins in an hour on one replica without events of their own: refused ones, and successful ones of an account that
 * logs in too often. They belong to an account, or to a client (a keyed hash of its address) if no account is known. Without
 * either, they are those beyond the tracking limits.
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
    readonly succeeded: (accountId: string) => Effect.Effect<void, StoreUnavailable>
    /** Counts only. `accountId` is null for an unknown account; `client` is a keyed hash of the address. */
    readonly refused: (client: string, accountId: string | null) => Effect.Effect<void>
  }
>()("vatproof/domain/login/LoginLog") {}

/** The history of logins in the log: each one that succeeds, and how many were refused. */
import { Context, type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The stream of the logins of an account, or of a client whose logins name no account; null for clients that are not told apart. */
export const loginStream = (subject: string | null): string => (subject === null ? "logins" : `logins-${subject}`)

/** The right password of a verified account was given, and a token is handed out. */
export const LoggedIn = DomainEvent.define("LoggedIn", 1, Schema.Struct({ account_id: Schema.String }))

/**
 * Logins of an hour on one replica that are no events of their own: the refused ones, and the successful ones of an account that logs in too
 * often. They are those of an account; or of a client (a keyed hash of its address), where no account is meant; or, with neither, of more
 * clients and accounts than are told apart.
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
    /** Counts only. `accountId` is null if the account is unknown; `client` is a keyed hash of the address. */
    readonly refused: (client: string, accountId: string | null) => Effect.Effect<void>
  }
>()("vatproof/domain/login/LoginLog") {}

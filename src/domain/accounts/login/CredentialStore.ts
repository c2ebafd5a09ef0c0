/** Reads and changes the stored logins of accounts. Erasing the contact data of an account removes its login permanently. */
import { Context, type Effect, type Option, type Redacted } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * `passwordHash` is null for accounts without password: accounts of POST /v1/register before a reset, and accounts whose owner must reset the
 * password. Access tokens are valid only in the `epoch` in which they were issued.
 */
export interface StoredLogin {
  readonly accountId: string
  readonly passwordHash: Redacted.Redacted | null
  readonly verified: boolean
  readonly epoch: number
}

export class CredentialStore extends Context.Service<
  CredentialStore,
  {
    /** Finds the login of an email address; case is ignored. */
    readonly byEmail: (email: string) => Effect.Effect<Option.Option<StoredLogin>, StoreUnavailable>
    /** Finds the login of an account. `accountId` is a UUID. */
    readonly byAccount: (accountId: string) => Effect.Effect<Option.Option<StoredLogin>, StoreUnavailable>
    /** Sets or removes (null) the password and starts a new epoch. Joins the caller's transaction. */
    readonly setPassword: (accountId: string, passwordHash: Redacted.Redacted | null) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/login/CredentialStore") {}

/** What logging in needs to know about accounts. Erasing the contact data of an account ends its login for good. */
import { Context, type Effect, type Option, type Redacted } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/**
 * `passwordHash` is null for accounts without a password: those of POST /v1/register, and those whose owner has to set one. Tokens are
 * good in the `epoch` they were issued in.
 */
export interface StoredLogin {
  readonly accountId: string
  readonly passwordHash: Redacted.Redacted | null
  readonly verified: boolean
  readonly epoch: number
}

export class CredentialReader extends Context.Service<
  CredentialReader,
  {
    /** Addresses are compared without regard to case. */
    readonly byEmail: (email: string) => Effect.Effect<Option.Option<StoredLogin>, StoreUnavailable>
    /** `accountId` is a UUID. */
    readonly byAccount: (accountId: string) => Effect.Effect<Option.Option<StoredLogin>, StoreUnavailable>
    /** Sets the password, or removes it, and begins a new epoch. Joins the transaction of its caller. */
    readonly setPassword: (accountId: string, passwordHash: Redacted.Redacted | null) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/login/CredentialReader") {}

/** What logging in needs to know about accounts. Erasing the contact data of an account ends its login for good. */
import { Context, type Effect, type Option, type Redacted } from "effect"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** `passwordHash` is null for accounts of POST /v1/register: nobody can log in to them. */
export interface Login {
  readonly accountId: string
  readonly passwordHash: Redacted.Redacted | null
  readonly verified: boolean
}

export class Logins extends Context.Service<
  Logins,
  {
    /** Addresses are compared without regard to case. */
    readonly byEmail: (email: string) => Effect.Effect<Option.Option<Login>, StoreUnavailable>
    /** `accountId` is a UUID. */
    readonly byAccount: (accountId: string) => Effect.Effect<Option.Option<Login>, StoreUnavailable>
  }
>()("vatproof/domain/Logins") {}

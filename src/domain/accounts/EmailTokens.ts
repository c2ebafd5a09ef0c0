/** The tokens in mailed links: 32 random bytes as hex, stored only as a hash (rule 47). */
import { Context, type DateTime, type Effect, type Option } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The purpose of a mail and its link. */
export type EmailPurpose = "verify_email" | "reset_password"

/** The account and purpose of a token, and the time of its issue. */
export interface IssuedToken {
  readonly accountId: string
  readonly purpose: EmailPurpose
  readonly issuedAt: DateTime.Utc
}

export class EmailTokens extends Context.Service<
  EmailTokens,
  {
    /** Stores a token by its hash: `sha256` has 64 hex digits. All methods join the caller's transaction. */
    readonly put: (sha256: string, token: IssuedToken) => Effect.Effect<void, StoreUnavailable>
    readonly find: (sha256: string, purpose: EmailPurpose) => Effect.Effect<Option.Option<IssuedToken>, StoreUnavailable>
    /** Removes the tokens of an account, for one purpose or for all purposes. */
    readonly removeOf: (accountId: string, purpose?: EmailPurpose) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/EmailTokens") {}

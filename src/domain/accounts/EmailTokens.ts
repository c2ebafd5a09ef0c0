/** The tokens in the links of mails: 32 random bytes as hex, of which only the hash is kept (rule 47). */
import { Context, type DateTime, type Effect, type Option } from "effect"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** What a mail and its link are for. */
export type EmailPurpose = "verify_email" | "reset_password"

/** What a token is good for, and when it was issued. */
export interface IssuedToken {
  readonly accountId: string
  readonly purpose: EmailPurpose
  readonly issuedAt: DateTime.Utc
}

export class EmailTokens extends Context.Service<
  EmailTokens,
  {
    /** All of them join the transaction of their caller. `sha256` has 64 hex digits. */
    readonly put: (sha256: string, token: IssuedToken) => Effect.Effect<void, StoreUnavailable>
    readonly find: (sha256: string, purpose: EmailPurpose) => Effect.Effect<Option.Option<IssuedToken>, StoreUnavailable>
    /** Forgets the tokens of an account, of one purpose or of all. */
    readonly removeOf: (accountId: string, purpose?: EmailPurpose) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/EmailTokens") {}

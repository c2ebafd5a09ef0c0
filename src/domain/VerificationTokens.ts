/** The tokens in mails that confirm an address: 32 random bytes as hex, of which only the hash is kept (DECISIONS 31). */
import { Context, type DateTime, type Effect, type Option } from "effect"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** Whose address a token confirms, and when it was issued. */
export interface IssuedToken {
  readonly accountId: string
  readonly issuedAt: DateTime.Utc
}

export class VerificationTokens extends Context.Service<
  VerificationTokens,
  {
    /** All of them join the transaction of their caller. `sha256` has 64 hex digits. */
    readonly put: (sha256: string, token: IssuedToken) => Effect.Effect<void, StoreUnavailable>
    readonly find: (sha256: string) => Effect.Effect<Option.Option<IssuedToken>, StoreUnavailable>
    /** Forgets every token of an account: once one of them was used, none is good any more. */
    readonly removeOf: (accountId: string) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/VerificationTokens") {}

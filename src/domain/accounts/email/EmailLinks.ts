/** Links in mails to the owner of an address (rules 47, 48, 53). Their tokens are 32 random bytes as hex, stored only as a hash. */
import { Context, type DateTime, type Effect, type Redacted } from "effect"
import type { EmailPurpose, InvalidToken } from "#domain/accounts/Account.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** All methods join the caller's transaction. */
export class EmailLinks extends Context.Service<
  EmailLinks,
  {
    /**
     * Queues a mail with the link of a new token to an account's address. A rollback discards the mail, and a committed mail is sent later,
     * even after a crash. Makes no network call.
     */
    readonly send: (
      purpose: EmailPurpose,
      to: { readonly accountId: string; readonly email: string },
      issuedAt: DateTime.Utc
    ) => Effect.Effect<void, StoreUnavailable>
    /** Returns the account of a token and the time of its issue. */
    readonly find: (
      purpose: EmailPurpose,
      token: Redacted.Redacted
    ) => Effect.Effect<{ readonly accountId: string; readonly issuedAt: DateTime.Utc }, InvalidToken | StoreUnavailable>
    /** Makes the links to an account invalid, for one purpose or for all purposes. */
    readonly removeOf: (accountId: string, purpose?: EmailPurpose) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/email/EmailLinks") {}

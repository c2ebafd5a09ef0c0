/** The queue of mails that users request (rule 53). */
import { Context, type Effect, type Redacted } from "effect"
import type { EmailPurpose } from "#domain/accounts/EmailTokens.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** `email` is the address as the user typed it; `token` has 64 hex digits and belongs only in the mail's link. */
export interface RequestedEmail {
  readonly purpose: EmailPurpose
  readonly accountId: string
  readonly email: string
  readonly token: Redacted.Redacted
}

export class EmailQueue extends Context.Service<
  EmailQueue,
  {
    /**
     * Queues a mail in the caller's transaction: a rollback discards it, and a committed mail is sent later, even after a crash.
     * Makes no network call.
     */
    readonly enqueue: (mail: RequestedEmail) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/email/EmailQueue") {}

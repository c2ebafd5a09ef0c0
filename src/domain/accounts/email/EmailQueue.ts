/** The queue of mails that users request (rule 53). */
import { Context, type Effect } from "effect"
import type { EmailPurpose } from "#domain/accounts/EmailTokens.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** `mailId` is a UUID; `email` is the address as the user typed it. */
export interface RequestedEmail {
  readonly mailId: string
  readonly purpose: EmailPurpose
  readonly accountId: string
  readonly email: string
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
>()("vatproof/domain/accounts/email/EmailQueue") {}

/** The mails that people ask for (rule 53). */
import { Context, type Effect, type Redacted } from "effect"
import type { EmailPurpose } from "#domain/accounts/EmailTokens.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** `email` is the address as the person typed it; `token` has 64 hex digits and belongs into the mail's link and nowhere else. */
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
     * Asks for a mail. It joins the transaction of its caller: what that one undoes is never sent, and what it commits is sent some
     * time after, whatever happens to this process. No network call happens here.
     */
    readonly enqueue: (mail: RequestedEmail) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/email/EmailQueue") {}

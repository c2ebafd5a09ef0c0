/** The mails that people ask for (rule 53). */
import { Context, type Effect, type Redacted } from "effect"
import type { MailPurpose } from "#domain/accounts/EmailTokens.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** `email` is the address as the person typed it; `token` has 64 hex digits and belongs into the mail's link and nowhere else. */
export interface RequestedMail {
  readonly purpose: MailPurpose
  readonly accountId: string
  readonly email: string
  readonly token: Redacted.Redacted
}

export class Mails extends Context.Service<
  Mails,
  {
    /**
     * Asks for a mail. It joins the transaction of its caller: what that one undoes is never sent, and what it commits is sent some
     * time after, whatever happens to this process. No network call happens here.
     */
    readonly enqueue: (mail: RequestedMail) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/email/EmailQueue") {}

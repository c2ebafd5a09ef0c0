/** Hands a mail over to whoever delivers it: a mail server, or a folder. */
import { Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { EmailPurpose } from "#domain/accounts/EmailTokens.ts"

/** A mail to one person. `mailId` (a UUID) stays the same over all attempts, and so does everything the mail is made of. */
export interface OutgoingMail {
  readonly mailId: string
  readonly purpose: EmailPurpose
  readonly email: string
  readonly token: Redacted.Redacted
  readonly requestedAt: DateTime.Utc
  readonly validUntil: DateTime.Utc
}

/** The mail was not accepted, for a reason that may pass, or no answer came. `reason` is a code or a few words and never names a person. */
export class MailDeferred extends Schema.TaggedError<MailDeferred>()("MailDeferred", { reason: Schema.String }) {}

/** The recipient or the mail was refused for good. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", { reason: Schema.String }) {}

export type MailFailure = MailDeferred | MailRefused

export class Mailer extends Context.Service<
  Mailer,
  {
    /** Returns the code of the answer. After a failure or an interruption the mail may have been accepted all the same. */
    readonly deliver: (mail: OutgoingMail) => Effect.Effect<string, MailFailure>
  }
>()("vatproof/domain/email/Mailer") {}

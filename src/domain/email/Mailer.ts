/** Delivers a mail to a mail server or a folder. */
import { Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { EmailPurpose } from "#domain/accounts/EmailTokens.ts"

/** A mail to one person. `mailId` (a UUID) and all other fields are the same in every attempt. */
export interface OutgoingMail {
  readonly mailId: string
  readonly purpose: EmailPurpose
  readonly email: string
  readonly token: Redacted.Redacted
  readonly requestedAt: DateTime.Utc
  readonly validUntil: DateTime.Utc
}

/** The mail was not accepted for a temporary reason, or no answer came. `reason` is a code or a few words without personal data. */
export class MailDeferred extends Schema.TaggedError<MailDeferred>()("MailDeferred", { reason: Schema.String }) {}

/** The recipient or the mail was rejected permanently. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", { reason: Schema.String }) {}

export type MailFailure = MailDeferred | MailRefused

export class Mailer extends Context.Service<
  Mailer,
  {
    /** Returns the code of the answer. After a failure or an interruption the mail may have been accepted. */
    readonly deliver: (mail: OutgoingMail) => Effect.Effect<string, MailFailure>
  }
>()("vatproof/domain/email/Mailer") {}

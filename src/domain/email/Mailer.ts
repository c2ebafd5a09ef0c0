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

/** Nobody took the mail, for a reason that may pass. `reason` is a code or a few words and never names a person. */
export class MailDeferred extends Schema.TaggedError<MailDeferred>()("MailDeferred", { reason: Schema.String }) {}

/** The recipient or the mail was refused for good. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", { reason: Schema.String }) {}

/** Everything was handed over and no answer came: the mail may have been taken or not, and nobody will ever know. */
export class MailUncertain extends Schema.TaggedError<MailUncertain>()("MailUncertain", { reason: Schema.String }) {}

export type MailFailure = MailDeferred | MailRefused | MailUncertain

export class Mailer extends Context.Service<
  Mailer,
  {
    /**
     * Gives back the code of the answer. `handOver` runs once, at the last moment before the mail can be taken: if it fails, the mail
     * is certainly not taken. An interruption before that moment leaves the mail untaken as well.
     */
    readonly deliver: (mail: OutgoingMail, handOver: Effect.Effect<void, MailDeferred>) => Effect.Effect<string, MailFailure>
  }
>()("vatproof/domain/email/Mailer") {}

/** Delivers a mail to a mail server or a folder. */
import { Context, type DateTime, type Effect, type PlatformError, type Redacted, Schema } from "effect"
import type { EmailPurpose } from "#domain/accounts/Account.ts"

/** A mail to one person. `mailId`, `accountId` (UUIDs) and all other fields are the same in every delivery attempt. */
export interface OutgoingMail {
  readonly mailId: string
  readonly accountId: string
  readonly purpose: EmailPurpose
  readonly email: string
  readonly token: Redacted.Redacted
  readonly requestedAt: DateTime.Utc
  readonly validUntil: DateTime.Utc
}

/** The mail server rejected the mail temporarily or did not answer. `reason` is a code or a few words without personal data. */
export class MailDeferred extends Schema.TaggedError<MailDeferred>()("MailDeferred", { reason: Schema.String }) {}

/** The mail server rejected the recipient or the mail permanently. `reason` is a code or a few words without personal data. */
export class MailRefused extends Schema.TaggedError<MailRefused>()("MailRefused", { reason: Schema.String }) {}

export type MailFailure = MailDeferred | MailRefused

export class Mailer extends Context.Service<
  Mailer,
  {
    /**
     * Delivers a mail and returns the server's reply code. After a failure or
     * an interruption the server may still have accepted the mail.
     */
    readonly deliver: (mail: OutgoingMail) => Effect.Effect<string, MailFailure>
  }
>()("vatproof/domain/accounts/email/Mailer") {}

/** The folder of this machine with mails that no mail server got. */
export class MailFolder extends Context.Service<
  MailFolder,
  {
    /** The accounts that have mails in the folder. */
    readonly accounts: Effect.Effect<ReadonlyArray<string>, PlatformError.PlatformError>
    /** Removes the mails of an account. */
    readonly remove: (accountId: string) => Effect.Effect<void, PlatformError.PlatformError>
  }
>()("vatproof/domain/accounts/email/MailFolder") {}

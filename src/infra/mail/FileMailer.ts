/**
 * Writes mails to a folder, for a service without a mail server. Each mail is an `.eml` file that only the user of the service
 * can read.
 */
import { Effect, Layer, Path } from "effect"
import { MailDeferred, Mailer, type OutgoingMail } from "#domain/email/Mailer.ts"
import * as MailMessage from "#infra/mail/MailMessage.ts"
import * as AtomicFile from "#infra/security/AtomicFile.ts"

export interface FileMailerOptions extends MailMessage.MailOptions {
  /** The folder for the mails. The mailer creates the folder if it is missing. */
  readonly directory: string
}

const make = Effect.fnUntraced(function* (options: FileMailerOptions) {
  const atomic = yield* AtomicFile.make
  const path = yield* Path.Path

  /** Writes the mail's file atomically. A second attempt replaces the file of the first. */
  const deliver = Effect.fn("Mailer.deliver")(
    function* (mail: OutgoingMail) {
      const { bytes } = yield* MailMessage.make(options, mail)
      const file = path.join(options.directory, `${mail.mailId}.eml`)
      yield* atomic.replace(file, bytes)
      yield* Effect.logInfo(`A mail was written to ${file}; set SMTP_URL to have mails sent`)
      return "file"
    },
    Effect.catchTag("PlatformError", ({ reason }) =>
      Effect.fail(new MailDeferred({ reason: `cannot write the file: ${reason._tag}` }))
    )
  )

  return Mailer.of({ deliver })
})

export const layer = (options: FileMailerOptions) => Layer.effect(Mailer, make(options))

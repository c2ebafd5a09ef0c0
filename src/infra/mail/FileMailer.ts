/** Writes mails into a folder, for a service without a mail server: one `.eml` file each, readable by its owner alone. */
import { Effect, FileSystem, Layer, Path } from "effect"
import { MailDeferred, Mailer, type OutgoingMail } from "#domain/email/Mailer.ts"
import * as MailMessage from "#infra/mail/MailMessage.ts"

export interface FileMailerOptions extends MailMessage.Letterhead {
  /** Made if missing. */
  readonly directory: string
}

const make = Effect.fnUntraced(function* (options: FileMailerOptions) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  /** A file appears whole or not at all, and a second attempt replaces the first. */
  const deliver = Effect.fn("Mailer.deliver")(
    function* (mail: OutgoingMail) {
      const { bytes } = yield* MailMessage.make(options, mail)
      const file = path.join(options.directory, `${mail.mailId}.eml`)
      yield* fs.makeDirectory(options.directory, { recursive: true, mode: 0o700 })
      yield* fs.writeFile(`${file}.part`, bytes, { mode: 0o600 })
      yield* fs.rename(`${file}.part`, file)
      yield* Effect.logInfo(`A mail was written to ${file}; set SMTP_URL to have mails sent`)
      return "file"
    },
    Effect.catchTag("PlatformError", ({ reason }) => Effect.fail(new MailDeferred({ reason: `file: ${reason._tag}` })))
  )

  return Mailer.of({ deliver })
})

export const layer = (options: FileMailerOptions) => Layer.effect(Mailer, make(options))

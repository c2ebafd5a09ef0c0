/**
 * Writes mails to a folder, for a service without a mail server. Each mail is an `.eml` file that only the user of the service
 * can read.
 */
import { Effect, FileSystem, Layer, Path } from "effect"
import { MailDeferred, Mailer, MailFolder, type OutgoingMail } from "#domain/accounts/email/Mailer.ts"
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
      const file = path.join(options.directory, `${mail.mailId}-${mail.accountId}.eml`)
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

const makeFolder = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  // The name of a file is the id of the mail, then the id of its account: 36 characters each.
  const accountIn = (name: string) => /^[\da-f-]{36}-(?<account>[\da-f-]{36})\.eml$/u.exec(name)?.groups?.["account"] ?? []
  const names = Effect.flatMap(fs.exists(directory), (there) => (there ? fs.readDirectory(directory) : Effect.succeed([])))
  return MailFolder.of({
    accounts: Effect.map(names, (all) => [...new Set(all.flatMap(accountIn))]),
    remove: Effect.fnUntraced(function* (accountId) {
      const removed = (yield* names).filter((name) => accountIn(name) === accountId)
      yield* Effect.forEach(removed, (name) => fs.remove(path.join(directory, name), { force: true }), { discard: true })
    })
  })
})

/** The folder of mails. It may have mails from a time without a mail server. */
export const layerFolder = (directory: string) => Layer.effect(MailFolder, makeFolder(directory))

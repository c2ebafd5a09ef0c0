/** Formats a mail (RFC 5322 and MIME). The same mail gives the same bytes in every attempt and on every replica. */
import { DateTime, Effect } from "effect"
import MailComposer from "nodemailer/lib/mail-composer"
import type { OutgoingMail } from "#domain/accounts/email/Mailer.ts"
import { compose, type Sender } from "#infra/mail/MailText.ts"

/** `from` is MAIL_FROM: `Name <address>` or an address. */
export interface MailOptions extends Sender {
  readonly from: string
}

/** A formatted mail: the addresses of the SMTP envelope, and the bytes to send. */
export interface MailMessage {
  readonly envelope: { readonly from: string; readonly to: string }
  readonly bytes: Buffer
}

/** Headers that stop other mail systems from sending automatic replies (RFC 3834, section 5; Exchange has its own header). */
const automatic = { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" }

/**
 * Returns a MIME part without a transfer encoding, because the texts are ASCII in short lines. A link can therefore be copied
 * from an `.eml` file.
 */
const part = (type: string, content: string) => ({
  contentType: type,
  raw: `Content-Type: ${type}; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n${content.replace(/\n/gu, "\r\n")}`
})

export const make = Effect.fnUntraced(function* (options: MailOptions, mail: OutgoingMail) {
  const { html, subject, text } = compose(options, mail)
  const composer = new MailComposer({
    from: options.from,
    to: { name: "", address: mail.email },
    subject,
    date: DateTime.toDateUtc(mail.requestedAt),
    messageId: `<${mail.mailId}@${domainOf(options.from)}>`,
    baseBoundary: mail.mailId,
    headers: automatic,
    text: part("text/plain", text),
    html: part("text/html", html),
    newline: "\r\n",
    disableFileAccess: true,
    disableUrlAccess: true
  }).compile()
  const bytes = yield* Effect.promise(() => composer.build())
  const { from } = composer.getEnvelope()
  return { envelope: { from: from === false ? "" : from, to: mail.email }, bytes } satisfies MailMessage
})

/** Returns the domain of MAIL_FROM, which follows the @ in the Message-ID. */
const domainOf = (from: string) => /@([^\s<>@]+?)>?\s*$/u.exec(from)?.[1] ?? "localhost"

/** The texts of mails, in ASCII and short lines, so that every mail client displays them unchanged. */
import { DateTime, Redacted } from "effect"
import type { OutgoingMail } from "#domain/accounts/email/Mailer.ts"
import type { EmailPurpose } from "#domain/accounts/Account.ts"

/** `publicUrl` is the service's base URL without a final slash; `serviceName` its name. */
export interface Sender {
  readonly publicUrl: string
  readonly serviceName: string
}

export interface MailText {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** The texts of the mails for one purpose. `name` is the service's name. */
interface Wording {
  /** The path of the page that the link in the mail opens. */
  readonly path: string
  readonly subject: (name: string) => string
  readonly heading: string
  readonly event: (name: string) => string
  readonly request: string
  readonly button: string
  readonly lifetime: string
  readonly again: string
  readonly otherwise: string
  readonly because: string
}

const wordings: Readonly<Record<EmailPurpose, Wording>> = {
  verify_email: {
    path: "/v1/auth/verify-email",
    subject: (name) => `Confirm your email address for ${name}`,
    heading: "Confirm your email address",
    event: (name) => `someone signed up for ${name}`,
    request: "confirm your address",
    button: "Confirm address",
    lifetime: "24 hours",
    again: "After that, sign up again with the same address to get a new link.",
    otherwise: "Without the confirmation the account cannot be used, and your address is not used for anything else.",
    because: "the sign-up"
  },
  reset_password: {
    path: "/v1/auth/password-reset",
    subject: (name) => `Set a new password for ${name}`,
    heading: "Set a new password",
    event: (name) => `someone asked to set a new password for ${name}`,
    request: "set the new password",
    button: "Set password",
    lifetime: "1 hour",
    again:
      "After that, ask for a new link. A new password ends all logins of the account.\nIf no mail confirmed this address before, it also revokes its API keys.",
    otherwise: "Your password stays as it is.",
    because: "the request"
  }
}

const linkTo = ({ publicUrl }: Sender, mail: OutgoingMail) =>
  new URL(`${publicUrl}${wordings[mail.purpose].path}?token=${Redacted.value(mail.token)}`).href

/** Formats a time for `dateOf`, which returns `22 November 2026, 14:05 UTC`: unambiguous in any time zone. */
const moment = DateTime.formatUtc({
  locale: "en-GB",
  day: "numeric",
  month: "long",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23"
})

const dateOf = (at: DateTime.Utc) => `${moment(at).replace(" at ", ", ")} UTC`

/** Returns the subject of a mail, and its text both as plain text and as HTML. */
export const compose = (sender: Sender, mail: OutgoingMail): MailText => {
  const name = sender.serviceName.charAt(0).toUpperCase() + sender.serviceName.slice(1)
  const { host } = new URL(sender.publicUrl)
  const wording = wordings[mail.purpose]
  const parts = {
    wording,
    subject: wording.subject(name),
    name,
    host,
    address: sender.publicUrl,
    link: linkTo(sender, mail),
    requested: dateOf(mail.requestedAt),
    until: dateOf(mail.validUntil)
  }
  return { subject: parts.subject, text: textOf(parts), html: htmlOf(parts) }
}

interface Parts {
  readonly wording: Wording
  readonly subject: string
  readonly name: string
  readonly host: string
  readonly address: string
  readonly link: string
  readonly requested: string
  readonly until: string
}

const textOf = ({ address, host, link, name, requested, until, wording }: Parts) => `Hello,

On ${requested}, ${wording.event(name)}
on ${host} with this email address. ${name} validates EU VAT IDs
for businesses.

If this was you, ${wording.request} by opening this link:

${link}

The link works once, until ${until} (${wording.lifetime}).
${wording.again}

If this was not you, you do not need to do anything.
${wording.otherwise}

This message was sent automatically because of ${wording.because}. We will
never ask you for your password by email.

-- 
${name}
${address}
`

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }
const escape = (text: string) => text.replace(/[&<>"']/gu, (character) => escapes[character] ?? character)

const paragraph = 'style="margin:0 0 16px"'
const small = 'style="margin:0 0 8px;font-size:14px;line-height:21px;color:#57606a"'

/** Returns HTML without images, scripts and external resources. The colours work on light and dark backgrounds. */
const htmlOf = (parts: Parts) => {
  const { wording } = parts
  const { address, host, link, name, requested, subject, until } = {
    host: escape(parts.host),
    link: escape(parts.link),
    name: escape(parts.name),
    address: escape(parts.address),
    requested: escape(parts.requested),
    subject: escape(parts.subject),
    until: escape(parts.until)
  }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light">
<title>${subject}</title>
</head>
<body style="margin:0;padding:0;background:#f4f5f7">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="background:#f4f5f7">
<tr><td align="center" style="padding:32px 16px">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0"
 style="max-width:560px;background:#ffffff;border:1px solid #d8dee4;border-radius:8px">
<tr><td style="padding:32px;font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;
font-size:16px;line-height:25px;color:#1f2328">
<h1 style="margin:0 0 16px;font-size:22px;line-height:29px;font-weight:600">${wording.heading}</h1>
<p ${paragraph}>Hello,</p>
<p ${paragraph}>On ${requested}, ${wording.event(name)} on <strong>${host}</strong>
with this email address. ${name} validates EU VAT IDs for businesses.</p>
<p ${paragraph}>If this was you, ${wording.request}:</p>
<table role="presentation" cellpadding="0" cellspacing="0" style="margin:0 0 16px">
<tr><td style="background:#0b57d0;border-radius:6px">
<a href="${link}"
 style="display:inline-block;padding:12px 24px;font-weight:600;color:#ffffff;text-decoration:none">${wording.button}</a>
</td></tr>
</table>
<p ${small}>Or open this link in your browser:<br>
<a href="${link}"
 style="color:#0b57d0;word-break:break-all">${link}</a></p>
<p ${small}>The link works once, until ${until} (${wording.lifetime}).
${wording.again}</p>
<p style="margin:24px 0 16px"><strong>This was not you?</strong> Then you do not need to do anything.
${wording.otherwise}</p>
<p style="margin:24px 0 0;padding:16px 0 0;border-top:1px solid #d8dee4;font-size:13px;line-height:20px;color:#57606a">
This message was sent automatically because of ${wording.because}. We will never ask you for your password by email.<br>
${name}, <a href="${address}" style="color:#57606a">${address}</a></p>
</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`
}

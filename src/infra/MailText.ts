/** What the mail says that asks a person to confirm an address. ASCII only and short lines, so that every client shows it as it is. */
import { DateTime, Redacted } from "effect"
import type { OutgoingMail } from "#domain/Mailer.ts"

/** `publicUrl` is the service's base address without a slash at its end; `serviceName` is what it calls itself. */
export interface Sender {
  readonly publicUrl: string
  readonly serviceName: string
}

export interface MailText {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** The page that the link opens confirms the address (INTERFACE 4.7). */
const linkTo = ({ publicUrl }: Sender, mail: OutgoingMail) =>
  new URL(`${publicUrl}/v1/auth/verify-email?token=${Redacted.value(mail.token)}`).href

/** `22 November 2026, 14:05 UTC`: a reader anywhere can tell what is meant. */
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

/** The same words as text and as HTML. */
export const compose = (sender: Sender, mail: OutgoingMail): MailText => {
  const name = sender.serviceName.charAt(0).toUpperCase() + sender.serviceName.slice(1)
  const { host } = new URL(sender.publicUrl)
  const parts = {
    subject: `Confirm your email address for ${name}`,
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
  readonly subject: string
  readonly name: string
  readonly host: string
  readonly address: string
  readonly link: string
  readonly requested: string
  readonly until: string
}

const textOf = ({ address, host, link, name, requested, until }: Parts) => `Hello,

On ${requested}, someone signed up for ${name}
on ${host} with this email address. ${name} validates EU VAT IDs
for businesses.

If this was you, confirm your address by opening this link:

${link}

The link works once, until ${until} (24 hours).
After that, sign up again with the same address and you get a new one.

If this was not you, you do not need to do anything. Without the
confirmation nobody can use the account, and your address is not used
for anything else.

This message was sent automatically because of the sign-up. We will
never ask you for your password by email.

-- 
${name}
${address}
`

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }
const escape = (text: string) => text.replace(/[&<>"']/gu, (character) => escapes[character] ?? character)

const paragraph = 'style="margin:0 0 16px"'
const small = 'style="margin:0 0 8px;font-size:14px;line-height:21px;color:#57606a"'

/** No images, no scripts, nothing that is loaded from anywhere. The colours hold on a light and on a dark background. */
const htmlOf = (parts: Parts) => {
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
<h1 style="margin:0 0 16px;font-size:22px;line-height:29px;font-weight:600">Confirm your email address</h1>
<p ${paragraph}>Hello,</p>
<p ${paragraph}>On ${requested}, someone signed up for ${name} on <strong>${host}</strong>
with this email address. ${name} validates EU VAT IDs for businesses.</p>
<p ${paragraph}>If this was you, confirm your address:</p>
<table role="presentation" cellpadding="0" cellspacing="0" style="margin:0 0 16px">
<tr><td style="background:#0b57d0;border-radius:6px">
<a href="${link}"
 style="display:inline-block;padding:12px 24px;font-weight:600;color:#ffffff;text-decoration:none">Confirm address</a>
</td></tr>
</table>
<p ${small}>Or open this link in your browser:<br>
<a href="${link}"
 style="color:#0b57d0;word-break:break-all">${link}</a></p>
<p ${small}>The link works once, until ${until} (24 hours).
After that, sign up again with the same address and you get a new one.</p>
<p style="margin:24px 0 16px"><strong>This was not you?</strong> Then you do not need to do anything. Without the
confirmation nobody can use the account, and your address is not used for anything else.</p>
<p style="margin:24px 0 0;padding:16px 0 0;border-top:1px solid #d8dee4;font-size:13px;line-height:20px;color:#57606a">
This message was sent automatically because of the sign-up. We will never ask you for your password by email.<br>
${name}, <a href="${address}" style="color:#57606a">${address}</a></p>
</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`
}

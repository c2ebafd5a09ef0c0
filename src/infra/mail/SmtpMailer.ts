/** Delivers mails through a mail server (SMTP_URL). */
import { Effect, Layer, Predicate, Redacted } from "effect"
import { createTransport } from "nodemailer"
import { MailDeferred, Mailer, MailRefused, type OutgoingMail } from "#domain/accounts/email/Mailer.ts"
import * as MailMessage from "#infra/mail/MailMessage.ts"

/** `name` is the host name that the service announces to the mail server; undefined means the host name of the machine. */
export interface SmtpMailerOptions extends MailMessage.MailOptions {
  readonly url: Redacted.Redacted
  readonly name: string | undefined
}

/** Limits of the connection pool. The pool does not retry a mail, because the outbox does. */
const pool = { pool: true, maxConnections: 4, idleTimeout: 30_000, maxRequeues: 0 } as const

/**
 * Timeouts of an SMTP connection, in milliseconds. `socketTimeout` is longer than `deliveryTimeout`, so `deliveryTimeout` alone
 * limits how long a mail server can stay silent.
 */
const timeouts = { connectionTimeout: 20_000, greetingTimeout: 20_000, dnsTimeout: 10_000, socketTimeout: 900_000 }

/** A server may scan a mail for minutes before it accepts it: RFC 5321, 4.5.3.2.6 (read 2026-11) asks for 10 minutes. */
const deliveryTimeout = "10 minutes"

const connect = (options: SmtpMailerOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => createTransport({ ...pool, ...timeouts, ...serverOf(options), logger: false })),
    (made) => Effect.sync(() => made.close({ force: true }))
  )

/** Connects and logs in to the mail server without a mail. Returns the reason of a failure as a code, otherwise null. */
export const check = (options: SmtpMailerOptions) =>
  Effect.flatMap(connect(options), (transport) => Effect.tryPromise({ try: () => transport.verify(), catch: classify })).pipe(
    Effect.match({ onFailure: ({ reason }) => reason, onSuccess: () => null }),
    Effect.scoped
  )

const make = Effect.fnUntraced(function* (options: SmtpMailerOptions) {
  const transport = yield* connect(options)

  const deliver = Effect.fn("Mailer.deliver")(function* (mail: OutgoingMail) {
    const { bytes, envelope } = yield* MailMessage.make(options, mail)
    const { response } = yield* Effect.tryPromise({
      try: (signal) => transport.sendMail({ envelope, raw: bytes, signal }),
      catch: classify
    }).pipe(
      Effect.timeoutOrElse({
        duration: deliveryTimeout,
        orElse: () => Effect.fail(new MailDeferred({ reason: "timeout" }))
      })
    )
    return codeOf(response)
  })

  return Mailer.of({ deliver })
})

/**
 * Returns the connection settings for SMTP_URL. `smtps://` and a password require a valid certificate, except on this machine.
 * `smtp://` without a password uses TLS if the server offers it, and accepts any certificate: the alternative is no encryption
 * (RFC 7435).
 */
const serverOf = (options: SmtpMailerOptions) => {
  const url = new URL(Redacted.value(options.url))
  const secure = url.protocol === "smtps:"
  const host = url.hostname.replace(/^\[|\]$/gu, "")
  const isLocal = /^(?:localhost|127(?:\.\d+){3}|::1)$/u.test(host)
  const hasPassword = url.username !== ""
  const proven = !isLocal && (secure || hasPassword)
  return {
    host,
    port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
    secure,
    requireTLS: proven && !secure,
    tls: { rejectUnauthorized: proven },
    ...(options.name === undefined ? {} : { name: options.name }),
    ...(hasPassword ? { auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) } } : {})
  }
}

/**
 * Classifies a failure. A 5xx reply about the recipient or the content of the mail is final. After any other failure, such as a
 * wrong password or a rejected sender, the outbox retries the mail, because an operator can fix the cause.
 */
const classify = (error: unknown): MailDeferred | MailRefused => {
  const reply = text(error, "response")
  if (reply === "") return new MailDeferred({ reason: text(error, "originalCode") || text(error, "code") || "failed" })
  const step = text(error, "command")
  const isFinal = reply.startsWith("5") && !reply.startsWith(badSequence) && (step === "RCPT TO" || step === "DATA")
  return isFinal ? new MailRefused({ reason: codeOf(reply) }) : new MailDeferred({ reason: codeOf(reply) })
}

/** The reply code "bad sequence of commands". It concerns the SMTP session, not the mail. */
const badSequence = "503"

/**
 * Returns `250` or `451 4.2.0`: the code and enhanced code (RFC 3463) of a reply. Excludes the text of the reply, which may
 * contain the recipient's address.
 */
const codeOf = (reply: string) => /^\d{3}(?:[ -][245]\.\d{1,3}\.\d{1,3}\b)?/u.exec(reply)?.[0].replace("-", " ") ?? "no code"

const text = (error: unknown, name: string) =>
  Predicate.hasProperty(error, name) && Predicate.isString(error[name]) ? error[name] : ""

export const layer = (options: SmtpMailerOptions) => Layer.effect(Mailer, make(options))

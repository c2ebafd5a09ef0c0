/** One session with a mail server: connected, encrypted where it can be, logged in, ready to send one mail after the other. */
import * as NodeStream from "@effect/platform-node/NodeStream"
import { Deferred, Effect, Predicate, Redacted, Schema, Stream } from "effect"
import SMTPConnection, { type SMTPConnectionOptions, type SMTPConnectionSendInfo } from "nodemailer/lib/smtp-connection"
import type { MailDeferred } from "#domain/email/Mailer.ts"
import type { MailMessage } from "#infra/mail/MailMessage.ts"

/** Where the mail server is. `name` is what this service calls itself there; none means this machine's own name. */
export interface SmtpServer {
  readonly url: Redacted.Redacted
  readonly name: string | undefined
}

/** What went wrong. `replyCode` is the server's, if it answered; `step` is the command it answered to. */
export class SmtpFailure extends Schema.TaggedError<SmtpFailure>()("SmtpFailure", {
  reason: Schema.String,
  replyCode: Schema.NullOr(Schema.Int),
  step: Schema.String,
  closed: Schema.Boolean
}) {}

export interface SmtpSession {
  /** False once either side has closed it. */
  readonly isOpen: () => boolean
  /** Gives back the code of the answer. `handOver` runs when the server has everything but the end of the mail. */
  readonly send: (
    message: MailMessage,
    handOver: Effect.Effect<void, MailDeferred>
  ) => Effect.Effect<string, SmtpFailure | MailDeferred>
}

/** Milliseconds. The caller bounds the whole of it; silence on the socket is left to that. */
const timeouts = { connectionTimeout: 20_000, greetingTimeout: 20_000, dnsTimeout: 10_000, socketTimeout: 900_000 }

/** A server that keeps a goodbye waiting is left after this. */
const goodbye = "1 second"

/** Opens a session; it ends with the scope. */
export const open = Effect.fnUntraced(function* (server: SmtpServer) {
  const { auth, options } = read(server)
  let ready = false
  const connection = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const made = new SMTPConnection(options)
      // What goes wrong is told to whoever waits; between two mails nobody does.
      made.on("error", () => undefined)
      return made
    }),
    (made) => (ready && !made.destroyed ? sayGoodbye(made) : Effect.sync(() => made.close()))
  )
  yield* connect(connection)
  if (auth !== null) yield* logIn(connection, auth)
  ready = true
  return {
    isOpen: () => !connection.destroyed,
    send: (message, handOver) => send(connection, message, handOver)
  } satisfies SmtpSession
})

interface Credentials {
  readonly user: string
  readonly pass: string
}

/**
 * `smtp://` encrypts if the server offers it. Without a password nothing is lost if its certificate proves nothing: the alternative is
 * no encryption at all (RFC 7435). A password goes only to a server that proves who it is, except on this machine.
 */
const read = (server: SmtpServer): { readonly options: SMTPConnectionOptions; readonly auth: Credentials | null } => {
  const url = new URL(Redacted.value(server.url))
  const secure = url.protocol === "smtps:"
  const host = url.hostname.replace(/^\[|\]$/gu, "")
  const isLocal = /^(?:localhost|127(?:\.\d+){3}|::1)$/u.test(host)
  const auth = url.username === "" ? null : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) }
  const proven = !isLocal && (secure || auth !== null)
  return {
    auth,
    options: {
      ...timeouts,
      host,
      port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
      secure,
      requireTLS: proven && !secure,
      tls: { rejectUnauthorized: proven },
      ...(server.name === undefined ? {} : { name: server.name }),
      logger: false
    }
  }
}

const connect = (connection: SMTPConnection) =>
  Effect.callback<void, SmtpFailure>((resume) => {
    const fail = (error: unknown) => resume(Effect.fail(failureOf(error)))
    connection.once("error", fail)
    connection.connect((error) => {
      connection.off("error", fail)
      if (error === undefined) resume(Effect.void)
      else fail(error)
    })
  })

const logIn = (connection: SMTPConnection, auth: Credentials) =>
  Effect.callback<void, SmtpFailure>((resume) => {
    const fail = (error: unknown) => resume(Effect.fail(failureOf(error)))
    connection.once("error", fail)
    connection.login({ ...auth }, (error) => {
      connection.off("error", fail)
      if (error === null) resume(Effect.void)
      else fail(error)
    })
  })

/** The stream ends, and with it the mail, only after `handOver`. An interruption closes the connection: half a mail is no mail. */
const send = Effect.fnUntraced(function* (
  connection: SMTPConnection,
  { bytes, envelope }: MailMessage,
  handOver: Effect.Effect<void, MailDeferred>
) {
  const refusal = yield* Deferred.make<never, MailDeferred>()
  const end = Stream.fromEffectDrain(Effect.tapError(handOver, (error) => Deferred.fail(refusal, error)))
  const body = yield* NodeStream.toReadable(Stream.concat(Stream.make<[Uint8Array]>(bytes), end))
  const answer = Effect.callback<SMTPConnectionSendInfo, SmtpFailure>((resume) => {
    connection.send({ ...envelope, size: bytes.byteLength }, body, (error, info) =>
      resume(error === null ? Effect.succeed(info) : Effect.fail(failureOf(error)))
    )
    return Effect.sync(() => connection.close())
  })
  const { response } = yield* Effect.raceFirst(answer, Deferred.await(refusal)).pipe(
    // Half a mail is on its way: the server must not take what comes next for the other half.
    Effect.tapError((error) => (isAnswered(error) ? Effect.void : Effect.sync(() => connection.close())))
  )
  return codeOf(response)
})

const isAnswered = (error: SmtpFailure | MailDeferred) => error._tag === "SmtpFailure" && error.replyCode !== null

const sayGoodbye = (connection: SMTPConnection) =>
  Effect.callback<void>((resume) => {
    connection.once("end", () => resume(Effect.void))
    connection.quit()
  }).pipe(Effect.timeoutOption(goodbye), Effect.andThen(Effect.sync(() => connection.close())))

/** `250`, `451 4.2.0`: the code and the enhanced code (RFC 3463) of a reply. Its text stays out: it may repeat the address. */
const codeOf = (reply: string) => /^\d{3}(?:[ -][245]\.\d{1,3}\.\d{1,3}\b)?/u.exec(reply)?.[0].replace("-", " ") ?? "no code"

const text = (error: unknown, name: string) =>
  Predicate.hasProperty(error, name) && Predicate.isString(error[name]) ? error[name] : ""

const failureOf = (error: unknown) => {
  const reply = text(error, "response")
  const code = text(error, "code")
  const system = text(error, "originalCode")
  return new SmtpFailure({
    reason: reply === "" ? system || code || "failed" : codeOf(reply),
    replyCode: /^\d{3}/u.test(reply) ? Number(reply.slice(0, 3)) : null,
    step: text(error, "command"),
    closed: code === "ECONNECTION" || closedBy.has(system)
  })
}

/** The peer, or the system it ran on, has ended the connection. */
const closedBy = new Set(["ECONNRESET", "EPIPE"])

/** Delivers mails through a mail server (SMTP_URL). */
import { Duration, Effect, Layer, Pool } from "effect"
import { MailDeferred, Mailer, type MailFailure, MailRefused, MailUncertain, type OutgoingMail } from "#domain/email/Mailer.ts"
import * as MailMessage from "#infra/mail/MailMessage.ts"
import * as SmtpSession from "#infra/mail/SmtpSession.ts"

export interface SmtpMailerOptions extends MailMessage.Letterhead, SmtpSession.SmtpServer {}

/** Sessions at a time, and how long an idle one is kept: servers end them after some minutes. */
const maxSessions = 4
const idle = "30 seconds"

/** From the first packet to the hand-over. */
const preparation = Duration.minutes(2)

/**
 * From there to the answer. A server may scan the mail for minutes before it accepts it, and giving up leaves the outcome unknown:
 * RFC 5321, 4.5.3.2.6 (read 2026-11) asks for 10 minutes.
 */
const silence = Duration.minutes(10)

const make = Effect.fnUntraced(function* (options: SmtpMailerOptions) {
  const pool = yield* Pool.makeWithTTL({
    acquire: SmtpSession.open(options),
    min: 0,
    max: maxSessions,
    timeToLive: idle,
    timeToLiveStrategy: "usage"
  })

  const openSession = Effect.gen(function* () {
    const session = yield* Pool.get(pool)
    if (session.isOpen()) return session
    yield* Pool.invalidate(pool, session)
    return yield* new SmtpSession.SmtpFailure({ reason: "idle session closed", replyCode: null, step: "", closed: true })
  }).pipe(Effect.retry({ times: maxSessions, while: (failure) => failure.reason === "idle session closed" }))

  const deliver = Effect.fn("Mailer.deliver")(function* (mail: OutgoingMail, handOver: Effect.Effect<void, MailDeferred>) {
    const message = yield* MailMessage.make(options, mail)
    let handedOver = false
    const mark = Effect.sync(() => {
      handedOver = true
    })
    const sending = Effect.gen(function* () {
      const session = yield* openSession
      // A session that failed once may be out of step: the next mail gets a new one.
      return yield* Effect.onError(session.send(message, Effect.andThen(handOver, mark)), () => Pool.invalidate(pool, session))
    })
    const tooLong = Effect.gen(function* () {
      yield* Effect.sleep(preparation)
      if (!handedOver) return yield* new MailDeferred({ reason: "time-out" })
      yield* Effect.sleep(silence)
      return yield* new MailUncertain({ reason: "no answer" })
    })
    return yield* Effect.raceFirst(sending, tooLong).pipe(
      Effect.catchTag("SmtpFailure", (failure) => Effect.fail(verdict(failure, handedOver)))
    )
  }, Effect.scoped)

  return Mailer.of({ deliver })
})

/**
 * What a failure means. A 5xx answer to the recipient or to the mail is final; one to anything else is about this service (a wrong
 * password, a sender that is not allowed), which an operator can put right. A connection that the server closes without an answer
 * counts as 451 (RFC 5321, 3.8): it has taken no responsibility. Only silence after the hand-over leaves the outcome open.
 */
const verdict = ({ closed, reason, replyCode, step }: SmtpSession.SmtpFailure, handedOver: boolean): MailFailure => {
  if (replyCode !== null && replyCode >= 400) {
    const isFinal = replyCode >= 500 && replyCode !== badSequence && (step === "RCPT TO" || step === "DATA")
    return isFinal ? new MailRefused({ reason }) : new MailDeferred({ reason })
  }
  return handedOver && !closed ? new MailUncertain({ reason }) : new MailDeferred({ reason })
}

/** 503 is about the state of the session, not about the mail. */
const badSequence = 503

export const layer = (options: SmtpMailerOptions) => Layer.effect(Mailer, make(options))

import { assert, describe, it } from "@effect/vitest"
import { DateTime, Deferred, Effect, Fiber, Redacted } from "effect"
import { TestClock } from "effect/testing"
import type { SMTPServerOptions } from "smtp-server"
import { Mailer, type OutgoingMail } from "#domain/accounts/email/Mailer.ts"
import * as SmtpMailer from "#infra/mail/SmtpMailer.ts"
import * as MailServer from "#test/support/MailServer.ts"

const mail: OutgoingMail = {
  purpose: "verify_email",
  mailId: "019371c0-5f00-7000-8000-0000000000a1",
  accountId: "019371c0-5f00-7000-8000-0000000000ac",
  email: "ada@example.com",
  token: Redacted.make("5e".repeat(32)),
  requestedAt: DateTime.makeUnsafe("2026-11-21T13:05:00Z"),
  validUntil: DateTime.makeUnsafe("2026-11-22T13:05:00Z")
}

const letterhead = { from: "Vatproof <no-reply@vat.example>", publicUrl: "https://vat.example", serviceName: "vatproof" }

/** Provides a new mail server and a mailer that uses it. */
const withServer =
  (options: SMTPServerOptions & { readonly credentials?: string } = {}) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(MailServer.MailServer, ({ url }) =>
      Effect.provide(effect, SmtpMailer.layer({ ...letterhead, url, name: "vat.example" }))
    ).pipe(Effect.provide(MailServer.layer(options)), Effect.scoped)

const deliver = () => Effect.flatMap(Mailer, (mailer) => mailer.deliver(mail))

const onlyArrived = Effect.flatMap(MailServer.MailServer, ({ arrived }) =>
  Effect.map(arrived, (mails) => {
    assert.strictEqual(mails.length, 1)
    return mails[0]
  })
)

/** A URL on which no mail server listens. */
const unreachable = Redacted.make("smtp://127.0.0.1:9")

describe("SmtpMailer", () => {
  it.effect("encrypts the connection if possible, even if the certificate is not trusted", () =>
    Effect.gen(function* () {
      yield* deliver()
      assert.isTrue((yield* onlyArrived)?.session.secure)
    }).pipe(withServer())
  )

  it.effect("sends without encryption if the server offers none", () =>
    Effect.gen(function* () {
      yield* deliver()
      assert.isFalse((yield* onlyArrived)?.session.secure)
    }).pipe(withServer({ disabledCommands: ["STARTTLS"] }))
  )

  it.effect("uses TLS from the start for smtps://", () =>
    Effect.gen(function* () {
      yield* deliver()
      assert.isTrue((yield* onlyArrived)?.session.secure)
    }).pipe(withServer({ secure: true }))
  )

  const accounts: SMTPServerOptions = {
    authOptional: false,
    onAuth: ({ password, username }, _, callback) =>
      username === "us@er" && password === "p:ss" ? callback(null, { user: username }) : callback(new Error("no"))
  }

  it.effect("logs in with the credentials in the URL", () =>
    Effect.gen(function* () {
      yield* deliver()
      assert.strictEqual((yield* onlyArrived)?.session.user, "us@er")
    }).pipe(withServer({ ...accounts, credentials: "us%40er:p%3Ass" }))
  )

  it.effect("reports that a mail is deferred if the server rejects the password", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(deliver())
      assert.deepStrictEqual([error._tag, error.reason], ["MailDeferred", "535"])
    }).pipe(withServer({ ...accounts, credentials: "user:wrong" }))
  )

  it.effect("reports that a mail is deferred if the server is unreachable", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(deliver())
      assert.deepStrictEqual([error._tag, error.reason], ["MailDeferred", "ECONNREFUSED"])
    }).pipe(Effect.provide(SmtpMailer.layer({ ...letterhead, url: unreachable, name: undefined })))
  )

  it.effect("reuses a session for the next mail, and opens a new session if the server closed it", () =>
    Effect.gen(function* () {
      const { arrived, down, up } = yield* MailServer.MailServer
      yield* deliver()
      yield* deliver()
      yield* down
      yield* up
      yield* Effect.retry(deliver(), { times: 2 })
      const sessions = (yield* arrived).map(({ session }) => session.id)
      assert.strictEqual(sessions[0], sessions[1])
      assert.notStrictEqual(sessions[1], sessions[2])
    }).pipe(withServer())
  )

  it.effect.each(["recipient", "end"] as const)(
    "times out after ten minutes without an answer of the mail server (stage of the mail: %s)",
    (at) =>
      Effect.gen(function* () {
        const { next } = yield* MailServer.MailServer
        const hold = yield* MailServer.hold
        yield* next({ at, hold })
        const fiber = yield* Effect.forkScoped(Effect.flip(deliver()))
        yield* Deferred.await(hold.reached)
        yield* TestClock.adjust("9 minutes")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 minute")
        const error = yield* Fiber.join(fiber)
        assert.deepStrictEqual([error._tag, error.reason], ["MailDeferred", "timeout"])
      }).pipe(withServer())
  )
})

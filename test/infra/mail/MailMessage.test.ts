import * as NodeServices from "@effect/platform-node/NodeServices"
import { DateTime, Effect, FileSystem, Logger, MutableRef, Redacted } from "effect"
import { simpleParser } from "mailparser"
import { Mailer, type OutgoingMail } from "#domain/accounts/email/Mailer.ts"
import * as FileMailer from "#infra/mail/FileMailer.ts"
import * as MailMessage from "#infra/mail/MailMessage.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const token = "5e".repeat(32)
const mail: OutgoingMail = {
  purpose: "verify_email",
  mailId: "019371c0-5f00-7000-8000-0000000000a1",
  accountId: "019371c0-5f00-7000-8000-0000000000ac",
  email: "Ada.O'Neil+vat@example.com",
  token: Redacted.make(token),
  requestedAt: DateTime.makeUnsafe("2026-11-21T13:05:09Z"),
  validUntil: DateTime.makeUnsafe("2026-11-22T13:05:09Z")
}
const letterhead = {
  from: "Völlig Sicher <no-reply@vat.example>",
  publicUrl: "https://vat.example/proof",
  serviceName: "vatproof"
}
const link = `https://vat.example/proof/v1/auth/verify-email?token=${token}`

describe("a mail message", () => {
  it.effect("names its sender and recipient, and is marked as automatic", function* () {
    const { bytes, envelope } = yield* MailMessage.make(letterhead, mail)
    const parsed = yield* Effect.promise(() => simpleParser(bytes))
    assert.deepStrictEqual(envelope, { from: "no-reply@vat.example", to: mail.email })
    assert.strictEqual(parsed.from?.text, '"Völlig Sicher" <no-reply@vat.example>')
    assert.strictEqual([parsed.to].flat()[0]?.text, mail.email)
    assert.strictEqual(parsed.subject, "Confirm your email address for Vatproof")
    assert.strictEqual(parsed.messageId, `<${mail.mailId}@vat.example>`)
    assert.strictEqual(parsed.date?.toISOString(), "2026-11-21T13:05:09.000Z")
    assert.strictEqual(parsed.headers.get("auto-submitted"), "auto-generated")
    assert.strictEqual(parsed.headers.get("x-auto-response-suppress"), "All")
  })

  it.effect("contains its link, dates and explanation both as text and as HTML", function* () {
    const { bytes } = yield* MailMessage.make(letterhead, mail)
    const { html, text } = yield* Effect.promise(() => simpleParser(bytes))
    for (const part of [text ?? "", html === false ? "" : html]) {
      for (const words of [
        link,
        "vat.example",
        "21 November 2026, 13:05 UTC",
        "22 November 2026, 13:05 UTC",
        "24 hours",
        "not you"
      ]) {
        assert.include(part, words)
      }
    }
  })

  it.effect("loads no external resources", function* () {
    const { bytes } = yield* MailMessage.make(letterhead, mail)
    const { html } = yield* Effect.promise(() => simpleParser(bytes))
    assert.notMatch(html === false ? "" : html, /<img|<script|<link|url\(|src=|@import/iu)
  })

  it.effect("is encoded as ASCII with short lines that do not break the link", function* () {
    const { bytes } = yield* MailMessage.make(letterhead, mail)
    const lines = bytes.toString("latin1").split("\r\n")
    assert.isTrue(lines.every((line) => /^[\t\x20-\x7e]{0,998}$/u.test(line)))
    assert.include(lines, link)
  })

  it.effect("is identical in every attempt to deliver it", function* () {
    const [one, other] = [yield* MailMessage.make(letterhead, mail), yield* MailMessage.make(letterhead, mail)]
    assert.isTrue(one.bytes.equals(other.bytes))
  })
})

describe("the mailer that writes files", () => {
  it.effect("writes a mail into a file that only the file's owner can read, and logs the file name", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = `${yield* fs.makeTempDirectoryScoped()}/data/outbox`
      const logged = MutableRef.make("")
      const logger = Logger.layer([
        Logger.map(Logger.formatLogFmt, (line) => MutableRef.update(logged, (before) => before + line))
      ])
      yield* Effect.flatMap(Mailer, (mailer) => mailer.deliver(mail)).pipe(
        Effect.provide(FileMailer.layer({ ...letterhead, directory })),
        Effect.provide(logger)
      )
      const file = `${directory}/${mail.mailId}-${mail.accountId}.eml`
      assert.deepStrictEqual(yield* fs.readDirectory(directory), [`${mail.mailId}-${mail.accountId}.eml`])
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      assert.strictEqual((yield* fs.stat(directory)).mode & 0o777, 0o700)
      assert.include(yield* fs.readFileString(file), link)
      assert.include(logged.current, file)
      assert.notInclude(logged.current, "example.com")
      assert.notInclude(logged.current, token)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

import { Effect, Option, Redacted } from "effect"
import { publicUrlOf, read } from "#infra/config/AppConfig.ts"
import * as Redaction from "#infra/telemetry/Redaction.ts"
import { assert, describe, it } from "#test/support/Test.ts"

describe("the mail settings", () => {
  it.effect.each(["smtp://127.0.0.1:2525", "smtps://us%40er:p%3Ass@mail.example", "smtp://[::1]:25"])(
    "accept SMTP_URL=%s",
    function* (url) {
      const { smtpUrl } = yield* read({ SMTP_URL: url })
      assert.deepStrictEqual(Option.map(smtpUrl, Redacted.value), Option.some(url))
      assert.notInclude(JSON.stringify(smtpUrl), "p%3Ass")
    }
  )

  it.effect.each([
    "mail.example",
    "http://mail.example",
    "smtp://",
    "smtp://mail.example/path",
    "smtp://secret@mail.example:99999"
  ])("reject SMTP_URL=%s without repeating it in the error", function* (url) {
    const { message } = yield* Effect.flip(read({ SMTP_URL: url }))
    assert.strictEqual(
      message,
      "SMTP_URL: Expected smtp://host:587 or smtps://host, with user:password@ before the host if needed and the special characters of the password percent-encoded"
    )
    // The redaction of logs must not alter the example URL in this message.
    assert.strictEqual(Redaction.make([]).text(message), message)
  })

  it.effect.each(["no-reply@vat.example", "Vatproof <no-reply@vat.example>", "Völlig Sicher <a@b.example>"])(
    "accept MAIL_FROM=%s",
    function* (from) {
      assert.deepStrictEqual((yield* read({ MAIL_FROM: from })).mailFrom, Option.some(from))
    }
  )

  it.effect.each(["no-address", "a@b@c", "<a@b.example", "A <a@b.example> <c@d.example>", 'A" <a@b.example>'])(
    "reject MAIL_FROM=%s",
    function* (from) {
      assert.match((yield* Effect.flip(read({ MAIL_FROM: from }))).message, /^MAIL_FROM: /u)
    }
  )

  const addresses: ReadonlyArray<readonly [Readonly<Record<string, string>>, string]> = [
    [{ PUBLIC_URL: "https://vat.example/" }, "https://vat.example"],
    [{ HOST: "0.0.0.0", PORT: "80" }, "http://localhost:80"],
    [{ HOST: "::1" }, "http://[::1]:8080"],
    [{}, "http://127.0.0.1:8080"]
  ]
  it.effect.each(addresses)("set the base URL of links in mails, without a trailing slash, from %j", function* ([settings, url]) {
    assert.strictEqual(publicUrlOf(yield* read(settings)), url)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { domainsOf, EmailAddress, emailKey } from "#domain/accounts/email/EmailAddress.ts"

const isEmail = Schema.is(EmailAddress)

describe("an email address", () => {
  it.each([
    "a@example.org",
    "first.last+tag@sub.example.co.uk",
    "UPPER@EXAMPLE.ORG",
    "o'neil_%&=?^`{|}~@example.org",
    "a@xn--mnchen-3ya.de",
    `${"a".repeat(64)}@example.org`,
    `a@${"b".repeat(63)}.org`
  ])("may have the form %s", (email) => {
    assert.isTrue(isEmail(email))
  })

  it.each([
    "",
    "a",
    "@example.org",
    "a@",
    "a@localhost",
    "a@b@example.org",
    "a b@example.org",
    " a@example.org",
    "a@example.org ",
    "a@example.org\n",
    "a@example..org",
    "a@.example.org",
    "a@example.org.",
    "a@-example.org",
    "a@example-.org",
    "a@exam_ple.org",
    "a@münchen.de",
    "a@[127.0.0.1]",
    "<a@example.org>",
    "a@example.org,b@example.org",
    "a@example.org\r\nBcc: b@example.org",
    "a\u0000@example.org",
    "ſ@example.org",
    "a@exampleſ.org",
    "a@\u212a.org",
    `${"a".repeat(65)}@example.org`,
    `a@${"b".repeat(64)}.org`,
    `a@${"b.".repeat(130)}org`
  ])("cannot have the form %j", (email) => {
    assert.isFalse(isEmail(email))
  })

  it("is compared case-insensitively", () => {
    assert.strictEqual(emailKey("First.Last@Example.ORG"), emailKey("first.last@example.org"))
  })

  it("belongs to its domain and to each parent domain, except the top-level domain", () => {
    assert.deepStrictEqual(domainsOf("a@x.Mailinator.COM"), ["x.mailinator.com", "mailinator.com"])
    assert.deepStrictEqual(domainsOf("a@example.org"), ["example.org"])
  })

  it.prop("is accepted or rejected without an exception, for any text", [Schema.String], ([text]) => {
    assert.isBoolean(isEmail(`${text}@${text}.${text}`))
  })
})

/** The list of disposable email providers from the package mailchecker. */
import { Layer } from "effect"
import MailChecker from "mailchecker"
import { DisposableDomains } from "#domain/accounts/email/EmailAddress.ts"

export const layer = Layer.sync(DisposableDomains, () => {
  const domains = new Set(MailChecker.blacklist())
  return { has: (domain) => domains.has(domain) }
})

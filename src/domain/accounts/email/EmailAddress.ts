/** Email addresses: form, comparison, and disposable providers (rule 46). */
import { Context, Schema } from "effect"

/**
 * The HTML definition of a valid email address (https://html.spec.whatwg.org/#valid-e-mail-address), with a dot in the domain.
 * It does not use the flag `i`, which would match `ſ` as an s: such a domain would bypass the list of disposable domains.
 */
const form =
  /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?(?:\.[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?)+$/u

export const EmailAddress = Schema.String.check(
  Schema.isPattern(form, { message: "must be an email address" }),
  Schema.isMaxLength(254, { message: "must have at most 254 characters" })
)

/** Returns true if the text is an email address. */
export const isEmailAddress = Schema.is(EmailAddress)

/** Returns the address in lower case. Addresses are compared in this form. */
export const emailKey = (email: string): string => email.toLowerCase()

/** Returns the domain of an address and each parent domain with a dot: `a.b.example` and `b.example` for `x@a.b.example`. */
export const domainsOf = (email: string): ReadonlyArray<string> => {
  const labels = emailKey(email).split("@").at(-1)?.split(".") ?? []
  return labels.slice(0, -1).map((_, index) => labels.slice(index).join("."))
}

/** The address belongs to a provider of disposable addresses. */
export class DisposableEmail extends Schema.TaggedError<DisposableEmail>()("DisposableEmail", {}) {
  override get message() {
    return "Addresses of disposable email providers are not accepted"
  }
}

/** The domains of disposable email providers. */
export class DisposableDomains extends Context.Service<DisposableDomains, { readonly has: (domain: string) => boolean }>()(
  "vatproof/domain/accounts/email/DisposableDomains"
) {}

/** Email addresses: form, comparison, and the throw-away ones (rule 46). */
import { Context, Schema } from "effect"

/**
 * As HTML defines a valid e-mail address (https://html.spec.whatwg.org/#valid-e-mail-address), with a dot in the domain. The flag `i`
 * would also take `ſ` for an s, and with it domains that are on no list.
 */
const form =
  /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?(?:\.[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?)+$/u

export const EmailAddress = Schema.String.check(
  Schema.isPattern(form, { message: "must be an email address" }),
  Schema.isMaxLength(254, { message: "has at most 254 characters" })
)

/** Whether the text is an address at all. */
export const isEmailAddress = Schema.is(EmailAddress)

/** Addresses are compared without regard to case. */
export const emailKey = (email: string): string => email.toLowerCase()

/** The domain and every domain above it that still has a dot: `a.b.example` gives `a.b.example` and `b.example`. */
export const domainsOf = (email: string): ReadonlyArray<string> => {
  const labels = emailKey(email).split("@").at(-1)?.split(".") ?? []
  return labels.slice(0, -1).map((_, index) => labels.slice(index).join("."))
}

/** The address is of a provider of throw-away addresses. */
export class DisposableEmail extends Schema.TaggedError<DisposableEmail>()("DisposableEmail", {}) {
  override get message() {
    return "Addresses of disposable email providers are not accepted"
  }
}

export class DisposableDomains extends Context.Service<DisposableDomains, { readonly has: (domain: string) => boolean }>()(
  "vatproof/domain/email/DisposableDomains"
) {}

/** The page that the link of a verification mail opens. */
import * as OutcomePage from "#http/site/OutcomePage.ts"
import type { Sha256 } from "#http/site/Page.ts"

/** The languages of the page. The first one is the default. */
export const languages = ["en", "de"] as const
export type Language = (typeof languages)[number]

/**
 * The result of opening the link. `confirmedOnly` means that the address is confirmed, but the account has no password. `unusable`
 * means that the token is incomplete or already used. If it was used, the address is confirmed, so the page must not claim the
 * opposite.
 */
export type Outcome = "confirmed" | "confirmedOnly" | "unusable" | "expired" | "unavailable"

const newMail = {
  en: "sign up again with the same address to get a new mail, at most one every 10 minutes and a few a day.",
  de: "registrieren Sie sich noch einmal mit derselben Adresse: Dann kommt eine neue Mail, höchstens eine alle 10 Minuten und einige am Tag."
} as const satisfies Record<Language, string>

const texts = {
  en: {
    confirmed: { title: "Your address is confirmed", text: "You can log in now." },
    confirmedOnly: {
      title: "Your address is confirmed",
      text: "It was signed up with different passwords, so none of them is set. Request a mail to set one."
    },
    unusable: {
      title: "This link is no longer valid",
      text: `It was used already, or a part of it is missing. If you have confirmed your address, just log in. If not, ${newMail.en}`
    },
    expired: {
      title: "This link is no longer valid",
      text: `It is older than 24 hours. To confirm your address, ${newMail.en}`
    },
    unavailable: { title: "Please open the link again", text: "It could not be checked at the moment. Try again in a minute." }
  },
  de: {
    confirmed: { title: "Ihre Adresse ist bestätigt", text: "Sie können sich jetzt anmelden." },
    confirmedOnly: {
      title: "Ihre Adresse ist bestätigt",
      text: "Sie wurde mit verschiedenen Passwörtern registriert, daher gilt keines davon. Fordern Sie eine Mail an, um eines zu setzen."
    },
    unusable: {
      title: "Dieser Link gilt nicht mehr",
      text: `Er wurde schon benutzt, oder ein Teil von ihm fehlt. Wenn Sie Ihre Adresse bestätigt haben, melden Sie sich einfach an. Wenn nicht, ${newMail.de}`
    },
    expired: {
      title: "Dieser Link gilt nicht mehr",
      text: `Er ist älter als 24 Stunden. Um Ihre Adresse zu bestätigen, ${newMail.de}`
    },
    unavailable: {
      title: "Bitte öffnen Sie den Link noch einmal",
      text: "Er konnte gerade nicht geprüft werden. Versuchen Sie es in einer Minute wieder."
    }
  }
} as const satisfies Record<Language, Record<Outcome, { readonly title: string; readonly text: string }>>

type VerificationPage = Omit<OutcomePage.OutcomePage, "title" | "text"> & { readonly outcome: Outcome }

export const respond = ({ outcome, requestId, ...page }: VerificationPage, sha256Hex: Sha256) => {
  const supportId = outcome === "confirmed" ? null : requestId
  return OutcomePage.respond({ ...page, ...texts[page.language][outcome], requestId: supportId }, sha256Hex)
}

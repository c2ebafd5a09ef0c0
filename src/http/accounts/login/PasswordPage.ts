/** The pages that the link of a password mail opens: the form, and the result. */
import * as OutcomePage from "#http/site/OutcomePage.ts"
import * as Page from "#http/site/Page.ts"

export const languages = ["en", "de"] as const
export type Language = (typeof languages)[number]

/**
 * The result of setting a password. `common` means that the password is too common. `unusable` means that the link is invalid, and
 * `expired` that it has expired.
 */
export type Outcome = "changed" | "common" | "unusable" | "expired" | "unavailable"

const texts = {
  en: {
    ask: { title: "Set a new password", label: "New password (8 characters or more)", button: "Set password" },
    changed: {
      title: "Your password is set",
      text: "All logins have ended, and API keys from before a mail confirmed this address. You can log in with the new password now."
    },
    common: {
      title: "Please choose another password",
      text: "This is one of the most common passwords, which attackers try first."
    },
    unusable: {
      title: "This link is no longer valid",
      text: "It was used already, or a part of it is missing. Ask for a new mail."
    },
    expired: { title: "This link is no longer valid", text: "It is older than one hour. Ask for a new mail." },
    unavailable: { title: "Please try again", text: "The password could not be set at the moment. Try again in a minute." }
  },
  de: {
    ask: { title: "Neues Passwort setzen", label: "Neues Passwort (mindestens 8 Zeichen)", button: "Passwort setzen" },
    changed: {
      title: "Ihr Passwort ist gesetzt",
      text: "Alle Anmeldungen sind beendet, ebenso API-Schlüssel aus der Zeit, bevor eine Mail diese Adresse bestätigt hat. Sie können sich jetzt mit dem neuen Passwort anmelden."
    },
    common: {
      title: "Bitte wählen Sie ein anderes Passwort",
      text: "Dieses gehört zu den häufigsten Passwörtern, die Angreifer zuerst probieren."
    },
    unusable: {
      title: "Dieser Link gilt nicht mehr",
      text: "Er wurde schon benutzt, oder ein Teil von ihm fehlt. Fordern Sie eine neue Mail an."
    },
    expired: { title: "Dieser Link gilt nicht mehr", text: "Er ist älter als eine Stunde. Fordern Sie eine neue Mail an." },
    unavailable: {
      title: "Bitte versuchen Sie es noch einmal",
      text: "Das Passwort konnte gerade nicht gesetzt werden. Versuchen Sie es in einer Minute wieder."
    }
  }
} as const

/** The form posts to a relative path, so that it works behind a proxy that adds a path prefix. */
const formOf = (language: Language, token: string) => {
  const { button, label } = texts[language].ask
  return `<form method="post" action="password-reset/confirm">
<input type="hidden" name="token" value="${Page.escape(token)}">
<p><label for="password">${label}</label><br>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="8" maxlength="256" required></p>
<p><button>${button}</button></p>
</form>`
}

/** Returns the page with the form for a new password. */
export const ask = (language: Language, token: string, sha256Hex: Page.Sha256) => {
  const { title } = texts[language].ask
  const main = `<h1>${title}</h1>\n${formOf(language, token)}`
  return Page.respond(Page.makePage({ language, title, main, hasForm: true }, sha256Hex), OutcomePage.headers)
}

type PasswordPage = Omit<OutcomePage.OutcomePage, "title" | "text"> & { readonly outcome: Outcome }

/** Returns the page that shows whether the password was set. */
export const respond = ({ outcome, requestId, ...page }: PasswordPage, sha256Hex: Page.Sha256) => {
  const supportId = outcome === "changed" ? null : requestId
  return OutcomePage.respond({ ...page, ...texts[page.language][outcome], requestId: supportId }, sha256Hex)
}

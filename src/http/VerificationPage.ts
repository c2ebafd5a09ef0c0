/** The page that a person sees after opening the link of a verification mail. It needs nothing from anywhere else. */
import { HttpServerResponse } from "effect/http"

/** The languages, as Accept-Language and `lang` attributes name them; the first one is the default. */
export const languages = ["en", "de"] as const
export type Language = (typeof languages)[number]

/**
 * What came of the link. A token is forgotten once it was used, so `unusable` is one that was used before as much as one that never was:
 * the page must not say that an address is unconfirmed.
 */
export type Outcome = "confirmed" | "unusable" | "expired" | "unavailable"

/** `status` is the one that programs get for the same outcome. */
export interface VerificationPage {
  readonly status: number
  readonly language: Language
  readonly outcome: Outcome
  /** Names the request, for support; not shown where everything went well. */
  readonly requestId: string
  /** Where asking again may help. */
  readonly retryAfterSeconds?: number | undefined
}

const newMail = {
  en: "sign up again with the same address to get a new mail, at most one every 10 minutes and a few a day.",
  de: "registrieren Sie sich noch einmal mit derselben Adresse: Dann kommt eine neue Mail, höchstens eine alle 10 Minuten und einige am Tag."
} as const satisfies Record<Language, string>

const texts = {
  en: {
    request: "Request",
    confirmed: { title: "Your address is confirmed", text: "You can log in now." },
    unusable: {
      title: "This link is no longer good",
      text: `It was used already, or a part of it is missing. If you have confirmed your address, just log in. If not, ${newMail.en}`
    },
    expired: {
      title: "This link is no longer good",
      text: `It is older than 24 hours. To confirm your address, ${newMail.en}`
    },
    unavailable: { title: "Please open the link again", text: "It could not be checked just now. Try again in a minute." }
  },
  de: {
    request: "Anfrage",
    confirmed: { title: "Ihre Adresse ist bestätigt", text: "Sie können sich jetzt anmelden." },
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
} as const satisfies Record<
  Language,
  Record<Outcome, { readonly title: string; readonly text: string }> & { readonly request: string }
>

/** What is small has the colour of all text: a paler one would be hard to read on one of both grounds. */
const style = `
  :root { color-scheme: light dark; }
  body { font: 1.125rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 18vh auto 0; padding: 0 1.5rem; }
  h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; }
  small { overflow-wrap: anywhere; }
`

/** Nothing is loaded, nothing is sent on: the address of the page holds the token. */
const headers = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  vary: "accept, accept-language"
}

export const respond = ({ language, outcome, requestId, retryAfterSeconds, status }: VerificationPage) => {
  const wait = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }
  const { request } = texts[language]
  const { text, title } = texts[language][outcome]
  return HttpServerResponse.text(
    `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${text}</p>
${outcome === "confirmed" ? "" : `<p><small>${request} ${escape(requestId)}</small></p>`}
</main>
</body>
</html>
`,
    { status, headers: { ...headers, ...wait, "content-language": language }, contentType: "text/html; charset=utf-8" }
  )
}

const escape = (text: string) => text.replace(/[&<>"']/gu, (character) => `&#${character.charCodeAt(0)};`)

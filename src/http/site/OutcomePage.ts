/** The page that shows a person the result of a request: a title and a text, in English or German. */
import * as Page from "#http/site/Page.ts"

export interface OutcomePage {
  /** The HTTP status, which equals that of the JSON response. */
  readonly status: number
  readonly language: "en" | "de"
  readonly title: string
  readonly text: string
  /** The id of the request, for support; null after a success. */
  readonly requestId: string | null
  /** Seconds to wait before a retry; set only if a retry may help. */
  readonly retryAfterSeconds?: number | undefined
}

const requestLabels = { en: "Request", de: "Anfrage" } as const

/** Headers that prevent caching, because the URL of the page may contain a token. */
export const headers = { "cache-control": "no-store", vary: "Accept, Accept-Language" }

export const respond = (page: OutcomePage, sha256Hex: Page.Sha256) => {
  const { language, requestId, retryAfterSeconds, status, text, title } = page
  const support = requestId === null ? "" : `\n<p><small>${requestLabels[language]} ${Page.escape(requestId)}</small></p>`
  const main = `<h1>${title}</h1>\n<p>${text}</p>${support}`
  const wait = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }
  return Page.respond(Page.makePage({ language, title, main }, sha256Hex), { ...headers, ...wait }, status)
}

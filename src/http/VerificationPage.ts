/** The page that a person sees after opening the link of a verification mail. It needs nothing from anywhere else. */
import { HttpServerResponse } from "effect/http"

/** `status` is the one that programs get for the same outcome. */
export interface VerificationPage {
  readonly status: number
  readonly title: string
  readonly text: string
  /** Names the request, for support; null where everything went well. */
  readonly requestId: string | null
}

const style = `
  :root { color-scheme: light dark; }
  body { font: 1.125rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 18vh auto 0; padding: 0 1.5rem; }
  h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; }
  small { color: gray; }
`

/** Nothing is loaded, nothing is sent on: the address of the page holds the token. */
const headers = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  vary: "accept"
}

export const respond = ({ requestId, status, text, title }: VerificationPage) =>
  HttpServerResponse.text(
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escape(title)}</h1>
<p>${escape(text)}</p>
${requestId === null ? "" : `<p><small>Request ${escape(requestId)}</small></p>`}
</main>
</body>
</html>
`,
    { status, headers, contentType: "text/html; charset=utf-8" }
  )

const escape = (text: string) => text.replace(/[&<>"']/gu, (character) => `&#${character.charCodeAt(0)};`)

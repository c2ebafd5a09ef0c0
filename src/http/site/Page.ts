/** Makes the HTML pages. Each page is a single file with its style, and loads nothing from other hosts. */
import { HttpServerResponse } from "effect/http"
import { pageStyle } from "#http/site/PageStyle.ts"

/** The parts of a page. All text within HTML parts must be escaped by `escape`, to prevent HTML injection. */
export interface PageParts {
  /** Language tag for `lang` and Content-Language, such as `en`. */
  readonly language: string
  /** Text, not HTML. */
  readonly title: string
  /** The content of `<main>`, as HTML. */
  readonly main: string
  /** CSS of this page, in addition to the CSS of all pages. */
  readonly style?: string
  /** True if the page may send forms to this service. */
  readonly hasForm?: boolean
  /**
   * The only script of the page. It may send requests only to this service, and show images of the style. The element `#application` has
   * the style of the script and not the style of all pages.
   */
  readonly script?: string
  /** Description and icon of a page in search results. A page without this field tells search engines not to list it. */
  readonly listed?: { readonly description: string; readonly icon: string }
}

export interface Page {
  readonly language: string
  readonly html: string
  /** The value of Content-Security-Policy. */
  readonly policy: string
}

export type Sha256 = (text: string) => string

export const makePage = (parts: PageParts, sha256Hex: Sha256): Page => {
  const { hasForm = false, language, listed, main, script, title } = parts
  const style = (script === undefined ? pageStyle : `@scope (:root) to (#application){${pageStyle}}`) + (parts.style ?? "")
  const source = (text: string) => `'sha256-${base64OfHex(sha256Hex(text))}'`
  const policy = [
    "default-src 'none'",
    `style-src ${source(style)}`,
    ...(script === undefined ? [] : [`script-src ${source(script)}`, "connect-src 'self'"]),
    ...(listed === undefined ? [] : [`img-src 'self'${script === undefined ? "" : " data:"}`]),
    "base-uri 'none'",
    `form-action ${hasForm ? "'self'" : "'none'"}`,
    "frame-ancestors 'none'"
  ].join("; ")
  const head =
    listed === undefined
      ? `<meta name="robots" content="noindex">`
      : `<meta name="description" content="${escape(listed.description)}">\n<link rel="icon" href="${escape(listed.icon)}" type="image/svg+xml">`
  return {
    language,
    policy,
    html: `<!DOCTYPE html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${head}
<title>${escape(title)}</title>
<style>${style}</style>
</head>
<body>
<main>
${main}
</main>${script === undefined ? "" : `\n<script>${script}</script>`}
</body>
</html>
`
  }
}

const base64OfHex = (hex: string) =>
  btoa(String.fromCharCode(...(hex.match(/../gu) ?? []).map((pair) => Number.parseInt(pair, 16))))

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }

/** Escapes text for the content of elements and for quoted attributes. */
export const escape = (text: string): string => text.replace(/[&<>"']/gu, (character) => entities[character] ?? character)

/**
 * Returns the response with a page. Its headers forbid browsers to send the URL of the page as a referrer, because the URL may contain
 * a secret.
 */
export const respond = ({ html, language, policy }: Page, headers: Readonly<Record<string, string>> = {}, status = 200) =>
  HttpServerResponse.text(html, {
    status,
    contentType: "text/html; charset=utf-8",
    headers: {
      "content-language": language,
      "content-security-policy": policy,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      ...headers
    }
  })

/** The frame of the pages at `/`, `/docs`, `/status` and `/plans`: the name of the service, and links to these pages. */
import { escape, makePage, type Page, type Sha256 } from "#http/site/Page.ts"
import { basePath, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

export interface SitePageParts {
  readonly title: string
  /** The description in search results. */
  readonly description: string
  /** HTML below the links. */
  readonly content: string
  readonly style?: string
  readonly hasForm?: boolean
  readonly script?: string
}

export const sitePage = (site: SiteSettings, parts: SitePageParts, sha256Hex: Sha256): Page => {
  const { content, description, hasForm = false, script, style = "", title } = parts
  const base = basePath(site)
  const links = [
    ["docs", "Docs"],
    ["status", "Status"],
    ["plans", "Plans"]
  ].map(([path, name]) => `<a href="${base}/${path}">${name}</a>`)
  const main = `<header class="issuer"><a href="${base}/">${escape(site.serviceName)}</a><nav>${links.join(" ")}</nav></header>
${site.isSandbox ? '<p class="mark">Sandbox: all answers are simulated and no evidence</p>\n' : ""}${content}`
  const listed = { description, icon: `${base}/favicon.svg` }
  return makePage(
    {
      language: "en",
      title: `${title} · ${site.serviceName}`,
      style: navigation + style,
      listed,
      hasForm,
      main,
      ...(script === undefined ? {} : { script })
    },
    sha256Hex
  )
}

const navigation = `
header.issuer{align-items:baseline}
nav a{display:inline-block;margin-left:.9rem;padding:.2rem 0}
header.issuer a{color:var(--soft)}
`

/** Returns a link to the operator's contact, or a note that the operator has set no contact. */
export const contactOf = ({ contact }: SiteSettings): string =>
  contact === null
    ? "the operator of this service, who has published no address"
    : `<a href="${escape(contact)}">${escape(contact.replace(/^mailto:/u, ""))}</a>`

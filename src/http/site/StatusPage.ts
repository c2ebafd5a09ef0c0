/** The page at `/status`: shows the report of GET /v1/status. */
import type { SourceState } from "#domain/vat/Sources.ts"
import type { SourceStatusReport } from "#http/system/SystemApi.ts"
import { escape, type Sha256 } from "#http/site/Page.ts"
import { sitePage } from "#http/site/SitePage.ts"
import { basePath, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

const tones = { operational: "good", degraded: "mixed", unavailable: "bad" } as const

const style = `
td.good{color:var(--good);font-weight:600}
td.mixed,td.bad{font-weight:600}
td.bad{color:var(--bad)}
`

export const statusPage = (site: SiteSettings, report: typeof SourceStatusReport.Encoded, sha256Hex: Sha256) => {
  const { failover_active, member_states, sources, status, timestamp } = report
  const rows = [
    { name: "VIES", ...sources.vies },
    { name: "BZSt", ...sources.bzst },
    { name: "Cache", ...sources.cache, latency_ms: null, last_checked: null }
  ]
  const limited = Object.entries(member_states).filter(([, { status }]) => status !== "operational")
  const isFine = limited.length === 0 && rows.every((row) => row.status === "operational")
  const tone = status === "degraded" ? "bad" : isFine ? "good" : "mixed"
  const headline = {
    good: "All systems operational",
    mixed: "Partly available",
    bad: "No source answers"
  }[tone]
  const failover = failover_active
    ? "<p>VIES is unavailable: German VAT IDs of callers with a key are checked at the BZSt.</p>"
    : ""
  const content = `<h1>Status</h1>
<section class="verdict ${tone}" role="status">
<p class="headline">${headline}</p>
${failover}
<p>As of <time datetime="${timestamp}">${utc(timestamp)}</time>. Stored answers stay available while a source is down.</p>
</section>
<table>
<thead><tr><th scope="col">Source</th><th scope="col">Status</th><th scope="col">Last answer took</th><th scope="col">Last checked</th></tr></thead>
<tbody>
${rows
  .map(
    ({ last_checked, latency_ms, name, status: state }) =>
      `<tr><th scope="row">${name}</th><td class="${tones[state]}">${state}</td><td>${latency_ms === null ? "–" : `${latency_ms} ms`}</td><td>${last_checked === null ? "–" : escape(utc(last_checked))}</td></tr>`
  )
  .join("\n")}
</tbody>
</table>
<h2>Member states</h2>
${limited.length === 0 ? "<p>All registers of the member states and of Northern Ireland answer.</p>" : membersOf(limited)}
<p>For programs: <a href="${basePath(site)}/v1/status">/v1/status</a>.</p>`
  return sitePage(site, { title: "Status", description: "Whether VIES and the BZSt answer", style, content }, sha256Hex)
}

const membersOf = (
  limited: ReadonlyArray<readonly [string, { readonly since: string; readonly status: SourceState }]>
) => `<table>
<thead><tr><th scope="col">VAT IDs that begin with</th><th scope="col">Status</th><th scope="col">Since</th></tr></thead>
<tbody>
${limited
  .map(
    ([prefix, { since, status }]) =>
      `<tr><th scope="row">${prefix}</th><td class="${tones[status]}">${status}</td><td>${utc(since)}</td></tr>`
  )
  .join("\n")}
</tbody>
</table>`

const utc = (timestamp: string) => `${timestamp.slice(0, 16).replace("T", " ")} UTC`

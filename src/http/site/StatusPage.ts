/** The page at `/status`: shows the report of GET /v1/status, and the history of each member state's register. */
import type { History } from "#domain/vat/SourceHistory.ts"
import type { SourceStatusReport } from "#http/system/SystemApi.ts"
import { type Sha256 } from "#http/site/Page.ts"
import { historyStyle, registersTable, tones, utc } from "#http/site/RegistersTable.ts"
import { sitePage } from "#http/site/SitePage.ts"
import { basePath, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

const style = `
td.good{color:var(--good);font-weight:600}
td.mixed,td.bad{font-weight:600}
td.bad{color:var(--bad)}
${historyStyle}`

/** `history` is null if it cannot be read now. */
export const statusPage = (
  site: SiteSettings,
  report: typeof SourceStatusReport.Encoded,
  history: History | null,
  sha256Hex: Sha256
) => {
  const { failover_active, member_states, sources, status, timestamp } = report
  const rows = [
    { name: "VIES", ...sources.vies },
    { name: "BZSt", ...sources.bzst },
    { name: "Cache", ...sources.cache, latency_ms: null, last_checked: null }
  ]
  const isFine =
    Object.values(member_states).every(({ status }) => status === "operational") &&
    rows.every((row) => row.status === "operational")
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
      `<tr><th scope="row">${name}</th><td class="${tones[state]}">${state}</td><td>${latency_ms === null ? "–" : `${latency_ms} ms`}</td><td>${last_checked === null ? "–" : utc(last_checked)}</td></tr>`
  )
  .join("\n")}
</tbody>
</table>
<h2>Member states</h2>
${registersTable(member_states, history)}
<p>For programs: <a href="${basePath(site)}/v1/status">/v1/status</a> and <a href="${basePath(site)}/v1/status/history?days=90">/v1/status/history</a>.</p>`
  return sitePage(site, { title: "Status", description: "Whether VIES and the BZSt answer", style, content }, sha256Hex)
}

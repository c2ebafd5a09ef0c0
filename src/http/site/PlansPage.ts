/** The page at `/plans`: the limits of each plan, and the operator's contact for a larger one. */
import { Struct } from "effect"
import { isPaid } from "#domain/callers/PaymentRequired.ts"
import type { AllPlans, PlanName } from "#domain/callers/PlanLimits.ts"
import type { Sha256 } from "#http/site/Page.ts"
import { contactOf, sitePage } from "#http/site/SitePage.ts"
import { basePath, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

const numberOf = (count: number) => count.toLocaleString("en")

export const plansPage = (site: SiteSettings, { anonymous, byName }: AllPlans, sha256Hex: Sha256) => {
  const rowOf = (plan: PlanName) =>
    `<tr><th scope="row">${plan}</th><td>${numberOf(byName[plan].perMonth)}</td><td>${numberOf(byName[plan].perMinute)}</td><td>${isPaid(plan) ? "yes" : "no"}</td></tr>`
  const content = `<h1>Plans</h1>
<table>
<thead><tr><th scope="col">Plan</th><th scope="col">Validations per month</th><th scope="col">… per minute</th><th scope="col">Qualified confirmations</th></tr></thead>
<tbody>
<tr><th scope="row">no key</th><td>${numberOf(anonymous.lifetime)} in all</td><td>${numberOf(anonymous.perMinute)}</td><td>no</td></tr>
${Struct.keys(byName).map(rowOf).join("\n")}
</tbody>
</table>
<p>The limits apply to each API key, per calendar month (UTC). A key of the free plan is free of charge: <code>POST /v1/register</code>, as <a href="${basePath(site)}/docs">the docs</a> describe.</p>
<section>
<h2>Get a larger plan</h2>
<p>Ask ${contactOf(site)}. Name the account's email address or its agent id. The change takes effect at once.</p>
</section>`
  return sitePage(
    site,
    { title: "Plans", description: "Limits of each plan, and the contact for larger ones", content },
    sha256Hex
  )
}

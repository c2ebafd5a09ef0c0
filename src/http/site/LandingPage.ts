/** The page at `/`: presents the service, and has a form that validates one VAT ID. It runs no script. */
import { DateTime } from "effect"
import type { Validation } from "#domain/validation/ValidationQuestion.ts"
import { escape, type Sha256 } from "#http/site/Page.ts"
import { sitePage } from "#http/site/SitePage.ts"
import { basePath, type SiteSettings } from "#http/pipeline/SiteSettings.ts"

/** The result of the submitted form. `input` is the submitted text. */
export type FormOutcome =
  | { readonly _tag: "Validated"; readonly input: string; readonly validation: Validation }
  | { readonly _tag: "Refused"; readonly input: string; readonly message: string; readonly isOutage: boolean }

/** The VAT ID in all examples of the pages. The sandbox answers that this VAT ID is valid. */
export const sampleVatId = "ATU12345678"

const style = `
form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end;margin:0 0 .6rem}
label{flex:1 1 14rem;font-weight:600}
input,button{font:inherit;min-height:2.75rem;border:1px solid var(--soft);border-radius:4px;padding:.4rem .75rem}
input{display:block;width:100%;margin-top:.25rem}
button{background:var(--good);border-color:var(--good);color:#fff;font-weight:600;cursor:pointer}
.note{color:var(--soft);font-size:.9375rem}
`

export const landingPage = (site: SiteSettings, outcome: FormOutcome | null, sha256Hex: Sha256) => {
  const base = basePath(site)
  const content = `<h1>Is this EU VAT ID valid, and can you prove that you asked?</h1>
<p>${escape(site.serviceName)} validates VAT IDs of the EU and of Northern Ireland against the official sources, VIES and Germany's BZSt, and keeps the proof.</p>
${outcome === null ? "" : outcomeOf(outcome)}
<section>
<h2>Try it</h2>
<form method="post" action="${base}/">
<label for="vat_id">VAT ID<input id="vat_id" name="vat_id" required maxlength="40" autocomplete="off" spellcheck="false" value="${escape(outcome?.input ?? sampleVatId)}"></label>
<button>Validate</button>
</form>
<p class="note">Ten validations are free without an account. The service stores only a keyed hash of your network address.</p>
</section>
<section>
<h2>What it does</h2>
<ul>
<li>Asks VIES, fails over to the BZSt, and never reports an outage as “invalid”.</li>
<li>Issues qualified confirmations (§ 18e UStG) as receipts that cannot be changed, as JSON, page and PDF.</li>
<li>Keeps every fact in an append-only, signed log that an auditor can verify without trusting the operator.</li>
<li>Meters usage exactly, and shows it in each response.</li>
</ul>
</section>
<section>
<h2>For programs</h2>
<pre>curl ${escape(site.publicUrl)}/v1/validate/${sampleVatId}</pre>
<ul>
<li><a href="${base}/docs">The interface, with a form for each call</a>, and as <a href="${base}/openapi.json">OpenAPI 3.1</a></li>
<li><a href="${base}/llms.txt">llms.txt</a>: the same for agents, on one page</li>
<li><a href="${base}/status">Status of the sources</a></li>
<li><a href="${base}/plans">Plans</a> and contact</li>
</ul>
</section>`
  const description = "Validate EU VAT IDs against VIES and the BZSt, and keep the proof"
  return sitePage(site, { title: "EU VAT ID validation", description, style, hasForm: true, content }, sha256Hex)
}

const outcomeOf = (outcome: FormOutcome): string => {
  if (outcome._tag === "Validated") return verdictOf(outcome.validation)
  const { input, isOutage, message } = outcome
  const headline = isOutage ? `No answer about ${input} at the moment` : `${input === "" ? "This" : input} was not checked`
  const after = isOutage ? "<p>This says nothing about the VAT ID: it may be valid.</p>" : ""
  return `<section class="verdict mixed" role="status">
<p class="headline">${escape(headline)}</p>
<p>${escape(message)}</p>
${after}
</section>`
}

const sourceNames = { vies: "VIES (European Commission)", bzst: "BZSt (Germany)" } as const

const verdictOf = ({ answer, served, vatId }: Validation): string => {
  const facts: ReadonlyArray<readonly [string, string]> = [
    // An unregistered VAT ID has no name.
    ...(answer.valid
      ? [
          ["Name", answer.company_name ?? "not disclosed by the source"] as const,
          ["Address", answer.company_address ?? "not disclosed by the source"] as const
        ]
      : []),
    ["Source", sourceNames[answer.source]],
    ["Answered", `${DateTime.formatIso(answer.answered_at)}${served === "live" ? "" : " (cached from an earlier call)"}`]
  ]
  return `<section class="verdict ${answer.valid ? "good" : "bad"}" role="status">
<p class="headline">${escape(vatId.value)} is ${answer.valid ? "valid" : "not valid"}</p>
<dl>
${facts.map(([name, value]) => `<div><dt>${name}</dt><dd><bdi>${escape(value)}</bdi></dd></div>`).join("\n")}
</dl>
</section>`
}

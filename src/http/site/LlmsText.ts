/** `/llms.txt` (llmstxt.org, read 2026-11): the interface for agents that know only the base URL. */
import type { OpenApi } from "effect/http-api"
import type { AllPlans } from "#domain/callers/PlanLimits.ts"
import { sampleVatId } from "#http/site/LandingPage.ts"
import type { SiteSettings } from "#http/pipeline/SiteSettings.ts"

export const llmsText = (site: SiteSettings, { info, paths }: OpenApi.OpenAPISpec, { anonymous, byName }: AllPlans): string => {
  const { contact, publicUrl } = site
  return `# ${info.title}

> Validates EU VAT IDs against VIES and the German BZSt, and keeps the proof. REST with JSON at ${publicUrl}. This page is enough to register, validate, and handle quota and errors.

## First calls

1. Get an API key. It is free (${byName.free.perMonth} validations a month, ${byName.free.perMinute} a minute) and shown only once, as \`api_key\`:

\`\`\`sh
curl -i -X POST ${publicUrl}/v1/register -H 'content-type: application/json' -d '{"agent_id":"my-agent/1.0"}'
\`\`\`

2. Validate a VAT ID. Only a source's answer sets \`valid\`; an outage is a 503, never \`valid: false\`. Without a key ${anonymous.lifetime} validations are free:

\`\`\`sh
curl -i ${publicUrl}/v1/validate/${sampleVatId} -H "X-Api-Key: $API_KEY"
\`\`\`

3. Check the quota. Each response to a key also has the header \`X-Service-Usage: <used>/<limit>\`:

\`\`\`sh
curl -i ${publicUrl}/v1/usage -H "X-Api-Key: $API_KEY"
\`\`\`

4. Accept a later answer: with \`Prefer: respond-async\` a validation that no source can answer now is a 202, whose \`Location\` has the answer later:

\`\`\`sh
curl -i -X POST ${publicUrl}/v1/validations -H "X-Api-Key: $API_KEY" -H 'Prefer: respond-async, wait=10' -H 'content-type: application/json' -d '{"vat_id":"${sampleVatId}"}'
\`\`\`

5. Validate a list of up to 50,000 VAT IDs. The response has the \`batch_id\` for the results:

\`\`\`sh
curl -i -X POST ${publicUrl}/v1/batches -H "X-Api-Key: $API_KEY" -H 'Prefer: wait=10' -H 'content-type: application/json' -d '{"items":[{"custom_id":"1","vat_id":"${sampleVatId}"}]}'
curl -i ${publicUrl}/v1/batches/$BATCH_ID/results -H "X-Api-Key: $API_KEY" -H 'accept: text/csv'
\`\`\`

6. Learn by one long poll which of your validations and batches have ended, in order. \`next_cursor\` is the \`after\` of the next call:

\`\`\`sh
curl -i "${publicUrl}/v1/updates?wait=30" -H "X-Api-Key: $API_KEY"
\`\`\`

A 402 has the next steps in \`error.details\`: \`plan\`, \`limit\`, \`resets_at\` (null: waiting does not help), \`upgrade_url\`, \`contact\`.

${sectionsOf(info.description ?? "", ["Errors", "Limits and counting"])}

## All calls

${callsIn(paths)}

## More

- [OpenAPI 3.1](${publicUrl}/openapi.json): every call, with its fields and examples; [the same as a page](${publicUrl}/docs)
- [Status of the sources](${publicUrl}/v1/status), and [their history](${publicUrl}/v1/status/history)
- [Plans](${publicUrl}/plans)${contact === null ? "" : `\n- Contact: ${contact}`}
`
}

/** Returns the sections of the introduction that have these headings. */
const sectionsOf = (introduction: string, headings: ReadonlyArray<string>) =>
  introduction
    .split(/\n(?=## )/u)
    .filter((section) => headings.some((heading) => section.startsWith(`## ${heading}\n`)))
    .map((section) => section.trim())
    .join("\n\n")

const methods = ["get", "post", "delete"] as const

/** Returns a line for each call. */
const callsIn = (paths: OpenApi.OpenAPISpec["paths"]) =>
  Object.entries(paths)
    .flatMap(([path, item]) =>
      methods.flatMap((method) => {
        const call = item[method]
        return call === undefined ? [] : [`- \`${method.toUpperCase()} ${path}\`: ${call.summary}`]
      })
    )
    .join("\n")

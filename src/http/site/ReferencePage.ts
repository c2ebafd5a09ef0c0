/** The page at `/docs`: describes each call, with a form that sends it. Only the forms need JavaScript. */
import { markdown } from "#http/site/Markdown.ts"
import { escape, type Sha256 } from "#http/site/Page.ts"
import type { Body, Call, Field, Input, Reference, Reply } from "#http/site/Reference.ts"
import { referenceScript } from "#http/site/ReferenceScript.ts"
import { sitePage } from "#http/site/SitePage.ts"
import type { SiteSettings } from "#http/pipeline/SiteSettings.ts"

const style = `
main{max-width:60rem}
h2{margin-top:2.5rem}
h3{margin:0;font-size:1.1rem;color:var(--ink)}
h4{margin:1rem 0 .3rem;font-size:.9375rem}
article{margin:0 0 1rem;padding:1rem 0;border-bottom:1px solid var(--line)}
.call{display:block;margin:.25rem 0 .6rem;overflow-wrap:anywhere}
.call b{margin-right:.5rem}
.soft{color:var(--soft)}
.wide{overflow-x:auto}
.fields dt{overflow-wrap:anywhere;color:var(--ink)}
.fields dl{margin:0}
summary{cursor:pointer;padding:.35rem 0}
form{margin:.8rem 0;padding:1rem;background:#f5f6f7}
form label,.credentials label{display:block;margin:0 0 .6rem;font-size:.9375rem}
input,select,textarea,button{font:inherit;min-height:2.5rem;border:1px solid var(--soft);border-radius:4px;padding:.3rem .6rem;background:#fff;color:inherit}
input,select,textarea{display:block;width:100%}
textarea{min-height:7rem;font-family:monospace;font-size:.875rem}
button{background:var(--good);border-color:var(--good);color:#fff;font-weight:600;cursor:pointer}
output:not(:empty){display:block;margin:.8rem 0 0;max-height:30rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace;font-size:.875rem}
pre{max-height:30rem;overflow:auto}
`

export const referencePage = (site: SiteSettings, reference: Reference, sha256Hex: Sha256) => {
  const { base, groups, introduction, title, version } = reference
  const content = `<h1>${escape(title)}: the interface <span class="soft">${escape(version)}</span></h1>
<p><a href="${base}/openapi.json">OpenAPI 3.1</a> · <a href="${base}/llms.txt">llms.txt</a> for agents</p>
<section aria-label="Contents">
${groups.map(({ calls, name }) => `<p><strong>${escape(name)}</strong>: ${calls.map(linkTo).join(", ")}</p>`).join("\n")}
</section>
<section class="credentials" aria-label="Credentials of the forms">
<label>API key for the forms below, if you have one<input id="api-key" autocomplete="off" spellcheck="false" placeholder="svc_live_…"></label>
<label>Access token of a login, or token of an auditor<input id="token" autocomplete="off" spellcheck="false"></label>
<noscript><p>The forms need JavaScript. <a href="${base}/">The form on the first page</a> does not.</p></noscript>
</section>
${groups
  .map(
    ({ calls, description, name }) =>
      `<section>\n<h2>${escape(name)}</h2>\n${markdown(description)}\n${calls.map((call) => articleOf(base, call)).join("\n")}\n</section>`
  )
  .join("\n")}
${markdown(introduction)}`
  const description = "Every call of the interface, with examples and a form to try it"
  return sitePage(site, { title: "Docs", description, style, content, script: referenceScript }, sha256Hex)
}

const linkTo = ({ id, summary }: Call) => `<a href="#${id}">${escape(summary)}</a>`

const schemeNames: Readonly<Record<string, string>> = {
  apiKey: "an API key (X-Api-Key)",
  bearer: "a login (Authorization: Bearer)",
  auditorToken: "an auditor's token (Authorization: Bearer)"
}

const whoOf = ({ isOpen, schemes }: Call) => {
  const names = schemes.map((scheme) => schemeNames[scheme] ?? scheme).join(" or ")
  if (schemes.length === 0) return "Needs no key."
  return isOpen ? `Needs no key; ${names} allows more.` : `Needs ${names}.`
}

const articleOf = (base: string, call: Call) => `<article id="${call.id}">
<h3>${escape(call.summary)}</h3>
<code class="call"><b>${call.method}</b>${escape(call.path)}</code>
${markdown(call.description)}
<p class="soft">${escape(whoOf(call))} <code>${call.id}</code></p>
${formOf(base, call)}
${call.replies.map(replyOf).join("\n")}
</article>`

/** Returns the form of a call. Required fields have an example as their value; empty fields are not sent. */
const formOf = (base: string, { body, id, inputs, method, path, schemes, summary }: Call) => {
  const required = inputs.filter(({ isRequired }) => isRequired)
  const optional = inputs.filter(({ isRequired }) => !isRequired)
  return `<form data-method="${method}" data-path="${escape(base + path)}" data-schemes="${schemes.join(" ")}" aria-label="Try: ${escape(summary)}">
${required.map((input) => inputField(id, input)).join("\n")}
${optional.length === 0 ? "" : `<details><summary>Optional parameters</summary>\n${optional.map((input) => inputField(id, input)).join("\n")}\n</details>`}
${body === null ? "" : `<label>Body<textarea name="body" data-in="body" spellcheck="false">${escape(body.examples[0]?.text ?? "{}")}</textarea></label>`}
<button>Try it</button>
<output aria-live="polite"></output>
</form>
${body === null ? "" : `<details><summary>Fields of the body</summary>${fieldsOf(body.fields)}</details>`}`
}

const inputField = (id: string, { choices, description, example, isRequired, name, place }: Input) => {
  const about = `<label><code>${escape(name)}</code> <span class="soft">${escape(description)}</span>`
  const attributes = `id="${id}-${escape(name)}" name="${escape(name)}" data-in="${place}"`
  if (choices.length > 0) {
    const options = ["", ...choices].map((choice) => `<option value="${escape(choice)}">${escape(choice)}</option>`)
    return `${about}<select ${attributes}>${options.join("")}</select></label>`
  }
  const value = isRequired ? `required value="${escape(example)}"` : `placeholder="${escape(example)}"`
  return `${about}<input ${attributes} ${value} autocomplete="off" spellcheck="false"></label>`
}

const replyOf = ({
  bodies,
  description,
  status
}: Reply) => `<details><summary><strong>${status}</strong> ${escape(firstLine(description))}</summary>
${markdown(description)}
${bodies.map(bodyOf).join("\n")}
</details>`

/** Returns the summary of a response: the codes of an error, or the description. */
const firstLine = (description: string) => {
  const codes = [...description.matchAll(/^- `([A-Z_]+)`/gmu)].map(([, code = ""]) => code)
  return codes.length > 0 ? codes.join(", ") : description
}

const bodyOf = ({ examples, fields, mediaType }: Body) => `<h4>${escape(mediaType)}</h4>
${examples.map(({ name, text }) => `<p class="soft">Example: ${escape(name)}</p>\n<pre tabindex="0">${escape(text)}</pre>`).join("\n")}
${fields.length === 0 ? "" : fieldsOf(fields)}`

const fieldsOf = (fields: ReadonlyArray<Field>) => `<div class="fields"><dl>
${fields
  .map(
    ({ description, name, type }) =>
      `<div><dt><code>${escape(name)}</code></dt><dd><span class="soft">${escape(type)}</span>${description === "" ? "" : `. ${escape(description)}`}</dd></div>`
  )
  .join("\n")}
</dl></div>`

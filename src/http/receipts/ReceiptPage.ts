/** Renders a receipt as a page: one self-contained file, for screens and A4 paper. */
import type { Attachment, Block, Fact, ReceiptDocument, Section } from "#domain/receipts/document/ReceiptDocument.ts"
import { escape, makePage, type Page, type Sha256 } from "#http/site/Page.ts"
import { receiptStyle } from "#http/receipts/ReceiptStyle.ts"

/**
 * Returns the page of a receipt. `pdfUrl` adds a link to the PDF, because a person with a browser cannot set the header Accept to
 * request the PDF.
 */
export const receiptPage = (document: ReceiptDocument, sha256Hex: Sha256, pdfUrl?: string): Page => {
  const { language, receiptId, title } = document
  const style = `${receiptStyle}${pageNumbers(document)}`
  const pdf = pdfUrl === undefined ? "" : `<p class="pdf"><a href="${escape(pdfUrl)}">PDF</a></p>\n`
  return makePage({ language, title: `${title}: ${receiptId}`, style, main: pdf + mainOf(document) }, sha256Hex)
}

const mainOf = ({
  attachments,
  compared,
  headline,
  issuer,
  law,
  lead,
  mark,
  receiptId,
  sections,
  title,
  tone
}: ReceiptDocument): string => `${markOf(mark)}<header>
<p class="issuer">${escape(issuer)}<span>${escape(receiptId)}</span></p>
<h1>${escape(title)}</h1>
<p class="law">${escape(law)}</p>
</header>
<section class="verdict ${tone}">
<p class="headline">${escape(headline)}</p>
<p class="compared">${escape(compared)}</p>
${lead.map((line) => `<p>${escape(line)}</p>`).join("\n")}
</section>
${sections.map((section) => sectionOf(section, attachments)).join("\n")}`

/** The banner of a simulated receipt, and a watermark across the screen and each printed page. */
const markOf = (mark: ReceiptDocument["mark"]): string =>
  mark === null
    ? ""
    : `<p class="mark">${escape(mark.title)}. ${escape(mark.text)}</p>\n<div class="watermark" aria-hidden="true">${escape(mark.title)}</div>\n`

const sectionOf = ({ blocks, heading }: Section, attachments: ReadonlyArray<Attachment>): string => `<section>
<h2>${escape(heading)}</h2>
${blocks.map((block) => blockOf(block, attachments)).join("\n")}
</section>`

const blockOf = (block: Block, attachments: ReadonlyArray<Attachment>): string => {
  switch (block._tag) {
    case "Paragraph":
      return `<p>${escape(block.text)}</p>`
    case "Facts":
      return `<dl>\n${block.facts.map(factOf).join("\n")}\n</dl>`
    case "Comparison":
      return `<table>
<thead><tr>${block.columns.map((column) => `<th scope="col">${escape(column)}</th>`).join("")}</tr></thead>
<tbody>
${block.rows
  .map(
    ({ field, result, supplied, word }) =>
      `<tr><th scope="row">${escape(field)}</th><td><bdi>${escape(supplied)}</bdi></td><td class="${word}">${escape(result)}</td></tr>`
  )
  .join("\n")}
</tbody>
</table>`
    case "Points":
      return `<ul>\n${block.points.map((point) => `<li>${escape(point)}</li>`).join("\n")}\n</ul>`
    case "Steps":
      return `<ol>\n${block.steps
        .map(({ command, text }) => `<li>${escape(text)}${command === null ? "" : ` <code>${escape(command)}</code>`}</li>`)
        .join("\n")}\n</ol>`
    case "Exact":
      return `<h3>${escape(block.label)}</h3>\n<pre><bdi>${escape(block.text)}</bdi></pre>`
    case "Attachments":
      return `<h3>${escape(block.label)}</h3>\n<ul>\n${attachments.map(attachmentOf).join("\n")}\n</ul>`
  }
}

const factOf = ({ kind, label, value }: Fact): string =>
  `<div><dt>${escape(label)}</dt><dd${kind === "code" ? ' class="code"' : ""}><bdi>${escape(value)}</bdi></dd></div>`

/** Returns a link that saves an attachment. The page itself contains the file, as a data URL. */
const attachmentOf = ({ description, mediaType, name, text }: Attachment): string =>
  `<li><a download="${escape(name)}" href="data:${mediaType};charset=utf-8,${escape(encodeURIComponent(text))}">${escape(name)}</a>: ${escape(description)}</li>`

/** Returns the CSS of the footer of printed pages. Removes all characters except letters, digits and hyphens from the id, to prevent CSS injection. */
const pageNumbers = ({ page: [page, of], receiptId }: ReceiptDocument): string => {
  const id = receiptId.replace(/[^A-Za-z0-9-]/gu, "")
  return `@page{@bottom-left{content:"${id}"}@bottom-right{content:"${page} " counter(page) " ${of} " counter(pages)}}`
}

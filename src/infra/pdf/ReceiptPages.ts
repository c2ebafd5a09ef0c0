/** The pages of a receipt's PDF. They are tagged for screen readers and programs that extract tables (PDF 1.7, 14.8). */
import { DateTime } from "effect"
import PdfDocument from "pdfkit"
import type { Attachment, Block, ReceiptDocument, Section, Tone } from "#domain/receipts/document/ReceiptDocument.ts"
import {
  attachmentsTable,
  comparisonTable,
  exactText,
  factsTable,
  paragraph,
  pointsList,
  stepsList
} from "#infra/pdf/ReceiptBlocks.ts"
import { type ReceiptFont, receiptFonts } from "#infra/pdf/ReceiptFonts.ts"
import { artifact, colours, height, rule, type Sheet, tag, write } from "#infra/pdf/ReceiptSheet.ts"

/** The margins of a page in points (72 per inch): 20 mm at the sides. */
const margins = { top: 52, right: 57, bottom: 62, left: 57 }

/**
 * Returns the complete PDF document, which the caller must end. All timestamps in the file are the receipt's time of issue, so
 * repeated renderings are identical.
 */
export const receiptPages = (document: ReceiptDocument): PDFKit.PDFDocument => {
  const issuedAt = DateTime.toDateUtc(DateTime.makeUnsafe(document.issuedAt))
  const pdf = new PdfDocument({
    size: "A4",
    margins,
    font: "",
    pdfVersion: "1.7",
    tagged: true,
    lang: document.language,
    displayTitle: true,
    bufferPages: true,
    info: {
      Title: `${document.title}: ${document.receiptId}`,
      Author: document.issuer,
      Subject: document.headline,
      Creator: "vatproof",
      Producer: "vatproof",
      CreationDate: issuedAt,
      ModDate: issuedAt
    }
  })
  for (const { font, name } of Object.values<ReceiptFont>(receiptFonts)) pdf.registerFont(name, font)
  const root = pdf.struct("Document")
  pdf.addStructure(root)
  const sheet: Sheet = { pdf, root, left: margins.left, width: pdf.page.width - margins.left - margins.right }
  title(sheet, document)
  verdict(sheet, document)
  for (const section of document.sections) drawSection(sheet, section, document.attachments)
  root.end()
  for (const { description, mediaType, name, text } of document.attachments) {
    const times = { creationDate: issuedAt, modifiedDate: issuedAt }
    pdf.file(Buffer.from(text), { name, type: mediaType, description, ...times })
  }
  footers(sheet, document)
  return pdf
}

const title = (sheet: Sheet, { issuer, law, receiptId, title }: ReceiptDocument) => {
  const { left, pdf, root, width } = sheet
  const small = { font: receiptFonts.text, size: 9, colour: colours.soft }
  const top = pdf.y
  tag(sheet, root, "P", () => {
    write(sheet, issuer, { ...small, x: left, width: width / 2 })
    pdf.y = top
    write(sheet, receiptId, { ...small, x: left + width / 2, width: width / 2, align: "right" })
  })
  rule(sheet, pdf.y + 3)
  pdf.y += 22
  tag(sheet, root, "H1", () => write(sheet, title, { font: receiptFonts.strong, size: 19, x: left, width }))
  pdf.y += 2
  tag(sheet, root, "P", () => write(sheet, law, { font: receiptFonts.text, size: 10.5, colour: colours.soft, x: left, width }))
  pdf.y += 14
}

/** Colours of the box with the verdict. The headline is green or red only if no result below contradicts the verdict. */
const boxes = {
  good: { edge: colours.good, ground: "#f2f7f3", headline: colours.good },
  mixed: { edge: colours.mixed, ground: "#fdf8ea", headline: colours.ink },
  bad: { edge: colours.bad, ground: "#fbf2f1", headline: colours.bad }
} as const satisfies Record<Tone, unknown>

const verdict = (sheet: Sheet, { compared, headline, lead, tone }: ReceiptDocument) => {
  const { left, pdf, root, width } = sheet
  const box = boxes[tone]
  const inner = { x: left + 16, width: width - 32 }
  const big = { font: receiptFonts.strong, size: 14, colour: box.headline, ...inner }
  const normal = { font: receiptFonts.text, size: 10, ...inner }
  const lines = [
    { text: compared, style: { ...normal, font: receiptFonts.strong } },
    ...lead.map((text) => ({ text, style: normal }))
  ]
  const gap = 3
  const top = pdf.y
  const all = height(sheet, headline, big) + lines.reduce((sum, line) => sum + gap + height(sheet, line.text, line.style), 0) + 20
  artifact(sheet, () => {
    pdf.rect(left, top, width, all).fill(box.ground)
    pdf.rect(left, top, 3, all).fill(box.edge)
  })
  pdf.y = top + 9
  tag(sheet, root, "P", () => write(sheet, headline, big))
  for (const { style, text } of lines) {
    pdf.y += gap
    tag(sheet, root, "P", () => write(sheet, text, style))
  }
  pdf.y = top + all + 20
}

/**
 * The minimum space in points for the beginning of a section. With less space, the section begins on the next page, so that its
 * heading does not stand alone at the end of a page.
 */
const spaceForSection = 90

const drawSection = (sheet: Sheet, { blocks, heading }: Section, attachments: ReadonlyArray<Attachment>) => {
  const { left, pdf, root, width } = sheet
  if (pdf.y + spaceForSection > pdf.page.maxY()) pdf.addPage()
  const section = pdf.struct("Sect")
  root.add(section)
  tag(sheet, section, "H2", () => write(sheet, heading, { font: receiptFonts.strong, size: 12, x: left, width }))
  rule(sheet, pdf.y + 2)
  pdf.y += 8
  for (const block of blocks) drawBlock({ ...sheet, root: section }, block, attachments)
  section.end()
  pdf.y += 13
}

const drawBlock = (sheet: Sheet, block: Block, attachments: ReadonlyArray<Attachment>) => {
  switch (block._tag) {
    case "Paragraph":
      return paragraph(sheet, block.text)
    case "Facts":
      return factsTable(sheet, block.facts)
    case "Comparison":
      return comparisonTable(sheet, block.columns, block.rows)
    case "Points":
      return pointsList(sheet, block.points)
    case "Steps":
      return stepsList(sheet, block.steps)
    case "Exact":
      return exactText(sheet, block.label, block.text)
    case "Attachments":
      return attachmentsTable(sheet, block.label, attachments)
  }
}

/** Writes the mark of a simulated receipt across the page. */
const watermark = (sheet: Sheet, { title }: NonNullable<ReceiptDocument["mark"]>) => {
  const { pdf } = sheet
  const { height, width } = pdf.page
  artifact(sheet, () => {
    pdf.save().rotate(-50, { origin: [width / 2, height / 2] })
    pdf.font(receiptFonts.strong.name).fontSize(58).fillColor(colours.bad, 0.16)
    pdf.text(title, (width - pdf.widthOfString(title)) / 2, height / 2 - 35, { lineBreak: false })
    pdf.restore().fillOpacity(1)
  })
}

/** Draws the footers and the mark at the end, when the number of pages is known. */
const footers = (sheet: Sheet, { mark, page: [page, of], receiptId }: ReceiptDocument) => {
  const { left, pdf, width } = sheet
  const { count, start } = pdf.bufferedPageRange()
  for (let index = start; index < start + count; index++) {
    pdf.switchToPage(index)
    // Removes the bottom margin, because text below the margin would start a new page.
    pdf.page.margins.bottom = 0
    if (mark !== null) watermark(sheet, mark)
    const style = { font: receiptFonts.text, size: 8.5, colour: colours.soft, width: width / 2 }
    const y = pdf.page.height - 40
    artifact(sheet, () => {
      pdf.y = y
      write(sheet, receiptId, { ...style, x: left })
      pdf.y = y
      write(sheet, `${page} ${index - start + 1} ${of} ${count}`, { ...style, x: left + width / 2, align: "right" })
    })
  }
}

/** Draws the blocks of a receipt's PDF: tables, lists, paragraphs and exact texts. */
import { Array as Arr } from "effect"
import type { Attachment, ComparedField, Fact } from "#domain/receipts/document/ReceiptDocument.ts"
import { receiptFonts } from "#infra/pdf/ReceiptFonts.ts"
import { code, colours, height, plain, row, rule, type Sheet, soft, tag, write } from "#infra/pdf/ReceiptSheet.ts"

/** Draws a table with labels on the left and values on the right. A SHA-256 in hexadecimal fits in the column of values. */
export const factsTable = (sheet: Sheet, facts: ReadonlyArray<Fact>): void => {
  const { left, pdf, root, width } = sheet
  const labelWidth = 150
  const value = { x: left + labelWidth + 14, width: width - labelWidth - 14 }
  const table = pdf.struct("Table")
  root.add(table)
  for (const fact of facts) {
    const style = fact.kind === "code" ? code(value.x, value.width) : plain(value.x, value.width)
    row(sheet, table, [
      { type: "TH", text: fact.label, style: soft(left, labelWidth) },
      { type: "TD", text: fact.value, style }
    ])
    pdf.y += 2.5
  }
  table.end()
  pdf.y += 3
}

const wordColours = { match: colours.good, mismatch: colours.bad, not_queried: colours.soft, not_provided: colours.ink } as const

export const comparisonTable = (
  sheet: Sheet,
  columns: readonly [string, string, string],
  rows: ReadonlyArray<ComparedField>
): void => {
  const { left, pdf, root, width } = sheet
  const [first, third] = [95, 118]
  const second = width - first - third - 24
  const at = [left, left + first + 12, left + first + second + 24] as const
  const table = pdf.struct("Table")
  root.add(table)
  const head = (text: string, x: number, columnWidth: number) => ({
    type: "TH",
    text,
    style: { ...soft(x, columnWidth), size: 9 }
  })
  row(sheet, table, [head(columns[0], at[0], first), head(columns[1], at[1], second), head(columns[2], at[2], third)])
  rule(sheet, pdf.y + 1)
  pdf.y += 4
  for (const { field, result, supplied, word } of rows) {
    const decided = word === "match" || word === "mismatch"
    row(sheet, table, [
      { type: "TH", text: field, style: soft(at[0], first) },
      { type: "TD", text: supplied, style: plain(at[1], second) },
      {
        type: "TD",
        text: result,
        style: { ...plain(at[2], third), font: decided ? receiptFonts.strong : receiptFonts.text, colour: wordColours[word] }
      }
    ])
    rule(sheet, pdf.y + 1)
    pdf.y += 4
  }
  table.end()
  pdf.y += 5
}

/** Draws an item of a list, on a new page if it does not fit on the current page. */
const item = (sheet: Sheet, label: string, text: string, command: string | null): void => {
  const { left, pdf, root, width } = sheet
  const indent = 14
  const body = plain(left + indent, width - indent)
  const typed = code(left + indent, width - indent)
  const tall = height(sheet, text, body) + (command === null ? 0 : height(sheet, command, typed))
  if (pdf.y + tall > pdf.page.maxY()) pdf.addPage()
  const element = pdf.struct("LI")
  root.add(element)
  const top = pdf.y
  tag(sheet, element, "Lbl", () => write(sheet, label, soft(left, indent)))
  pdf.y = top
  tag(sheet, element, "LBody", () => {
    write(sheet, text, body)
    if (command !== null) write(sheet, command, typed)
  })
  element.end()
  pdf.y += 4
}

export const pointsList = (sheet: Sheet, points: ReadonlyArray<string>): void => {
  const list = sheet.pdf.struct("L")
  sheet.root.add(list)
  for (const point of points) item({ ...sheet, root: list }, "•", point, null)
  list.end()
}

export const stepsList = (
  sheet: Sheet,
  steps: ReadonlyArray<{ readonly text: string; readonly command: string | null }>
): void => {
  const list = sheet.pdf.struct("L")
  sheet.root.add(list)
  for (const [index, { command, text }] of steps.entries()) item({ ...sheet, root: list }, `${index + 1}.`, text, command)
  list.end()
}

/** Draws a paragraph. Starts a new page if the current page cannot hold it and the beginning of the next block. */
export const paragraph = (sheet: Sheet, text: string): void => {
  const { left, pdf, root, width } = sheet
  const style = plain(left, width)
  if (pdf.y + height(sheet, text, style) + 40 > pdf.page.maxY()) pdf.addPage()
  tag(sheet, root, "P", () => write(sheet, text, style))
  pdf.y += 5
}

export const attachmentsTable = (sheet: Sheet, label: string, attachments: ReadonlyArray<Attachment>): void => {
  const { left, pdf, root, width } = sheet
  if (pdf.y + 50 > pdf.page.maxY()) pdf.addPage()
  tag(sheet, root, "P", () => write(sheet, label, { ...soft(left, width), size: 9 }))
  pdf.y += 1
  const facts = attachments.map(({ description, name }): Fact => ({ label: description, value: name, kind: "code" }))
  factsTable(sheet, facts)
}

/** Width of a character of the monospaced font, as a fraction of the font size. */
const codeAdvance = 0.6

/**
 * Prints a text in full, over as many pages as needed. Breaks lines only at full width, even within a word, so that readers can
 * compare the text character by character.
 */
export const exactText = (sheet: Sheet, label: string, text: string): void => {
  const { left, pdf, root, width } = sheet
  if (pdf.y + 50 > pdf.page.maxY()) pdf.addPage()
  tag(sheet, root, "P", () => write(sheet, label, { ...soft(left, width), size: 9 }))
  pdf.y += 1
  const style = code(left, width)
  const columns = Math.floor(width / (style.size * codeAdvance))
  const lines = style.font
    .spell(text)
    .split("\n")
    .flatMap((line) => Arr.chunksOf(Array.from(line), columns).map((characters) => characters.join("")))
  // Allows one more character per line, because pdfkit counts the line break as a character and would wrap full lines again.
  tag(sheet, root, "Code", () => write(sheet, lines.join("\n"), { ...style, width: width + style.size }))
  pdf.y += 7
}

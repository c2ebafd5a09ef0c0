/** Drawing primitives for the pages of a receipt. Lengths are in points, 72 per inch. */
import { type ReceiptFont, receiptFonts } from "#infra/pdf/ReceiptFonts.ts"

/** An element of the PDF's logical structure. */
export type Element = ReturnType<PDFKit.PDFDocument["struct"]>

/**
 * The PDF document (`pdf`), the structure element that contains new content (`root`), and the text column. `pdf.y` is the current
 * vertical position.
 */
export interface Sheet {
  readonly pdf: PDFKit.PDFDocument
  readonly root: Element
  readonly left: number
  readonly width: number
}

export interface Style {
  readonly font: ReceiptFont
  readonly size: number
  readonly x: number
  readonly width: number
  readonly colour?: string
  readonly align?: "right"
}

export const colours = { ink: "#1b1e23", soft: "#5a616b", line: "#d5d9de", good: "#1f6b3a", bad: "#a3231f", mixed: "#b07a00" }

const optionsOf = ({ align, size, width }: Style) => ({ width, lineGap: size * 0.12, ...(align === undefined ? {} : { align }) })

/** Writes text below the previous text, and wraps it at the width of the style. */
export const write = ({ pdf }: Sheet, text: string, style: Style): void => {
  pdf
    .font(style.font.name)
    .fontSize(style.size)
    .fillColor(style.colour ?? colours.ink)
  pdf.text(style.font.spell(text), style.x, pdf.y, optionsOf(style))
}

/** Returns the height that a text would take. */
export const height = ({ pdf }: Sheet, text: string, style: Style): number =>
  pdf.font(style.font.name).fontSize(style.size).heightOfString(style.font.spell(text), optionsOf(style))

/** Draws content as a new child of `parent` in the PDF's logical structure. */
export const tag = ({ pdf }: Sheet, parent: Element, type: string, draw: () => void): void => {
  parent.add(pdf.struct(type, {}, draw))
}

/** Draws decoration, which screen readers skip. */
export const artifact = ({ pdf }: Sheet, draw: () => void): void => {
  pdf.markContent("Artifact", { type: "Layout" })
  draw()
  pdf.endMarkedContent()
}

/** Draws a thin line across the column. */
export const rule = (sheet: Sheet, y: number): void => {
  const { left, pdf, width } = sheet
  artifact(sheet, () => {
    pdf
      .moveTo(left, y)
      .lineTo(left + width, y)
      .lineWidth(0.6)
      .stroke(colours.line)
  })
}

/**
 * Distance from the top of a line to its baseline, as a fraction of the font size; equal in both font families. With it, `row`
 * aligns all cells of a row on one baseline.
 */
const ascent = 0.984

/**
 * Writes the cells of one table row side by side. `type` is the type of a cell in the PDF's logical structure. A row that does
 * not fit on the page starts a new page.
 */
export const row = (sheet: Sheet, parent: Element, cells: ReadonlyArray<{ type: string; text: string; style: Style }>): void => {
  const { pdf } = sheet
  const tallest = Math.max(...cells.map(({ style, text }) => height(sheet, text, style)))
  if (pdf.y + tallest > pdf.page.maxY()) pdf.addPage()
  const top = pdf.y
  const { page } = pdf
  const element = pdf.struct("TR")
  parent.add(element)
  const largest = Math.max(...cells.map(({ style }) => style.size))
  let bottom = top
  for (const { style, text, type } of cells) {
    // Only a cell that is longer than a page continues on the next page. Callers must put the longest cell last.
    if (pdf.page === page) pdf.y = top + (largest - style.size) * ascent
    tag(sheet, element, type, () => write(sheet, text, style))
    bottom = pdf.page === page ? Math.max(bottom, pdf.y) : pdf.y
  }
  element.end()
  pdf.y = bottom
}

export const plain = (x: number, width: number): Style => ({ font: receiptFonts.text, size: 10, x, width })
export const soft = (x: number, width: number): Style => ({ ...plain(x, width), colour: colours.soft })
export const code = (x: number, width: number): Style => ({ font: receiptFonts.code, size: 8.2, x, width })

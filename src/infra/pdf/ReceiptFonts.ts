/** The fonts of a receipt's PDF: Adobe's Source Sans and Source Code (SIL Open Font License), which know Latin, Greek and Cyrillic. */
import { readFileSync } from "node:fs"
import { create, type Font, type FontCollection } from "fontkit"
import { codePoint } from "#domain/receipts/document/ReceiptDocument.ts"

declare global {
  // pdfkit takes a font that is open already; its types do not say so.
  namespace PDFKit.Mixins {
    interface PDFFont {
      registerFont(name: string, font: Font | FontCollection): this
    }
  }
}

export interface ReceiptFont {
  readonly name: string
  /** Open for all documents: to read its tables again for each takes longer than all the rest. */
  readonly font: Font | FontCollection
  /** The text with every character that the font lacks written out: nothing is left out of a receipt. */
  readonly spell: (text: string) => string
}

const load = (name: string, location: string): ReceiptFont => {
  const font = create(readFileSync(new URL(location)))
  const known = new Set("characterSet" in font ? font.characterSet : [])
  nameGlyphs(font, known)
  const spell = (text: string) =>
    Array.from(text, (character) =>
      character === "\n" || known.has(character.codePointAt(0) ?? 0) ? character : codePoint(character)
    ).join("")
  return { name, font, spell }
}

/**
 * A font keeps each glyph as it was first asked for, and says what text it stands for only if that was for a character. But a glyph that is put
 * together of others asks for these by their numbers: after a receipt with an "í" no "ı" of a later one could be copied or searched for. So all
 * are asked for by their characters first. Where one glyph is that of two characters the one counts that no normal form replaces.
 */
const nameGlyphs = (font: Font | FontCollection, known: ReadonlySet<number>) => {
  if (!("glyphForCodePoint" in font)) return
  const isReplaced = (code: number) => String.fromCodePoint(code).normalize("NFKC") !== String.fromCodePoint(code)
  for (const code of [...known].toSorted((one, other) => Number(isReplaced(one)) - Number(isReplaced(other))))
    font.glyphForCodePoint(code)
}

/** Reads the files, once. */
export const receiptFonts = {
  text: load("text", import.meta.resolve("source-sans/TTF/SourceSans3-Regular.ttf")),
  strong: load("strong", import.meta.resolve("source-sans/TTF/SourceSans3-Semibold.ttf")),
  code: load("code", import.meta.resolve("source-code-pro/TTF/SourceCodePro-Regular.ttf"))
}

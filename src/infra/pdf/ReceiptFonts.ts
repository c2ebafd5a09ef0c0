/** The fonts of a receipt's PDF: Adobe's Source Sans and Source Code (SIL Open Font License), for Latin, Greek and Cyrillic. */
import { readFileSync } from "node:fs"
import { create, type Font, type FontCollection } from "fontkit"
import { codePoint } from "#domain/receipts/document/ReceiptDocument.ts"

declare global {
  // pdfkit accepts a parsed font, but its type declarations lack this overload.
  namespace PDFKit.Mixins {
    interface PDFFont {
      registerFont(name: string, font: Font | FontCollection): this
    }
  }
}

export interface ReceiptFont {
  readonly name: string
  /** Parsed once for all documents, because parsing takes longer than rendering a document. */
  readonly font: Font | FontCollection
  /** Replaces each character that the font lacks by an escape, so that the receipt loses no character. */
  readonly spell: (text: string) => string
}

const load = (name: string, location: string): ReceiptFont => {
  const font = create(readFileSync(new URL(location)))
  const codePoints = new Set("characterSet" in font ? font.characterSet : [])
  nameGlyphs(font, codePoints)
  const spell = (text: string) =>
    Array.from(text, (character) =>
      character === "\n" || codePoints.has(character.codePointAt(0) ?? 0) ? character : codePoint(character)
    ).join("")
  return { name, font, spell }
}

/**
 * Requests every glyph once by its character, so that a reader can copy and search all text of a PDF. fontkit caches a glyph
 * together with the text of its first use. If "ı" were first used as a part of "í", its glyph would have no text. If two
 * characters share a glyph, the glyph gets the character that Unicode normalization (NFKC) keeps.
 */
const nameGlyphs = (font: Font | FontCollection, codePoints: ReadonlySet<number>) => {
  if (!("glyphForCodePoint" in font)) return
  const isReplaced = (code: number) => String.fromCodePoint(code).normalize("NFKC") !== String.fromCodePoint(code)
  for (const code of [...codePoints].toSorted((one, other) => Number(isReplaced(one)) - Number(isReplaced(other))))
    font.glyphForCodePoint(code)
}

/** Reads the font files when this module is imported. */
export const receiptFonts = {
  text: load("text", import.meta.resolve("source-sans/TTF/SourceSans3-Regular.ttf")),
  strong: load("strong", import.meta.resolve("source-sans/TTF/SourceSans3-Semibold.ttf")),
  code: load("code", import.meta.resolve("source-code-pro/TTF/SourceCodePro-Regular.ttf"))
}

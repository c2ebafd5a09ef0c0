/**
 * The texts of a receipt that differ between languages. ReceiptDocument.ts has
 * the facts and their order, which are the same in all languages.
 */
import type { MatchWord, Receipt } from "#domain/receipts/Receipt.ts"

/** The languages, as Accept-Language and `lang` attributes name them; the first one is the default. */
export const receiptLanguages = ["en", "de"] as const
export type ReceiptLanguage = (typeof receiptLanguages)[number]

/** Validity dates in words; null if the BZSt gave none. */
export interface ValidityDates {
  readonly from: string | null
  readonly until: string | null
}

/** The comparison of the supplied company data: the number of fields, of mismatches, and of fields without a result. */
export interface ComparedData {
  readonly supplied: number
  readonly mismatches: number
  readonly uncompared: number
}

export interface ReceiptText {
  readonly title: string
  /** The mark of a simulated receipt. It replaces the sentence that the BZSt answered. */
  readonly sandbox: { readonly title: string; readonly text: string }
  readonly law: string
  /** The words before the page number and before the number of pages: `Page` and `of`. */
  readonly page: readonly [string, string]
  readonly months: ReadonlyArray<string>
  readonly date: (day: number, month: string, year: string) => string
  readonly moment: (date: string, clock: string) => string
  readonly headline: (vatId: string, valid: boolean) => string
  /** Returns a sentence with the result of the comparison of company data. The sentence mentions only what was compared. */
  readonly compared: (data: ComparedData) => string
  readonly answered: (moment: string) => string
  readonly notOfTheAuthority: string
  readonly valid: (valid: boolean) => string
  /** A sentence with the meaning of each BZSt status. */
  readonly statuses: Readonly<Record<string, (dates: ValidityDates) => string>>
  readonly matches: Readonly<Record<MatchWord, { readonly name: string; readonly meaning: string }>>
  readonly fields: Readonly<Record<keyof Receipt["input"], string>>
  readonly notSupplied: string
  readonly notDisclosed: string
  readonly none: string
  readonly issuedBy: (source: string) => string
  readonly milliseconds: (count: number) => string
  readonly more: (characters: number) => string
  readonly headings: Readonly<
    Record<"confirmation" | "comparison" | "official" | "proves" | "provesNot" | "exchange" | "record" | "verify", string>
  >
  readonly columns: readonly [string, string, string]
  readonly paragraphs: Readonly<Record<"comparison" | "official" | "exchange" | "record", string>>
  readonly labels: Readonly<Record<ReceiptLabel, string>>
  readonly proves: (position: number) => ReadonlyArray<string>
  readonly provesNot: ReadonlyArray<string>
  /** Verification steps with their commands. The lines are short enough for paper, because readers copy them from there. */
  readonly verify: (receiptId: string) => ReadonlyArray<{ readonly text: string; readonly command: string | null }>
  readonly attachments: Readonly<Record<"receipt" | "request" | "response", string>>
}

/** The names of the labelled facts. */
export type ReceiptLabel =
  | "receiptId"
  | "issuedAt"
  | "issuedBy"
  | "target"
  | "requester"
  | "reference"
  | "result"
  | "status"
  | "statusMeaning"
  | "validFrom"
  | "validUntil"
  | "answeredAt"
  | "requestId"
  | "officialName"
  | "officialAddress"
  | "askedAt"
  | "duration"
  | "httpStatus"
  | "sha256"
  | "request"
  | "response"
  | "position"
  | "recordedAt"
  | "eventId"
  | "account"
  | "key"
  | "attachments"

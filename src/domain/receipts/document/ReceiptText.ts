/** The texts of a receipt in each language. ReceiptDocument.ts has its order and facts, which all languages share. */
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
  readonly law: string
  /** The texts before the page number and before the number of pages. */
  readonly page: readonly [string, string]
  readonly months: ReadonlyArray<string>
  readonly date: (day: number, month: string, year: string) => string
  readonly moment: (date: string, clock: string) => string
  readonly headline: (vatId: string, valid: boolean) => string
  /** States only what was compared. This and the next two are whole sentences. */
  readonly compared: (data: ComparedData) => string
  readonly answered: (moment: string) => string
  readonly notOfTheAuthority: string
  readonly valid: (valid: boolean) => string
  /** The meaning of each BZSt status; a whole sentence. */
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
  /** Verification steps and commands, in lines short enough for paper, because they are copied from there. */
  readonly verify: (receiptId: string) => ReadonlyArray<{ readonly text: string; readonly command: string | null }>
  readonly attachments: Readonly<Record<"receipt" | "request" | "response", string>>
}

/** Labelled facts. */
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

/**
 * The content of a receipt for people in one language: facts, order and wording.
 * The page and the PDF render only this content, so they cannot differ.
 */
import { DateTime, Schema } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { type MatchWord, Receipt } from "#domain/receipts/Receipt.ts"
import { receiptInEnglish } from "#domain/receipts/document/ReceiptInEnglish.ts"
import { receiptInGerman } from "#domain/receipts/document/ReceiptInGerman.ts"
import type { ComparedData, ReceiptLabel, ReceiptLanguage, ReceiptText } from "#domain/receipts/document/ReceiptText.ts"
import type { ReceiptRecord } from "#domain/receipts/ReceiptReader.ts"

/**
 * A labelled value. A `code` is displayed in a monospaced font, because people
 * compare it character by character. `\n` separates the lines of a value.
 */
export interface Fact {
  readonly label: string
  readonly value: string
  readonly kind: "words" | "code"
}

export interface ComparedField {
  readonly field: string
  readonly supplied: string
  readonly result: string
  readonly word: MatchWord
}

export type Block =
  | { readonly _tag: "Paragraph"; readonly text: string }
  | { readonly _tag: "Facts"; readonly facts: ReadonlyArray<Fact> }
  | {
      readonly _tag: "Comparison"
      readonly columns: readonly [string, string, string]
      readonly rows: ReadonlyArray<ComparedField>
    }
  | { readonly _tag: "Points"; readonly points: ReadonlyArray<string> }
  | { readonly _tag: "Steps"; readonly steps: ReadonlyArray<{ readonly text: string; readonly command: string | null }> }
  | { readonly _tag: "Exact"; readonly label: string; readonly text: string }
  | { readonly _tag: "Attachments"; readonly label: string }

export interface Section {
  readonly heading: string
  readonly blocks: ReadonlyArray<Block>
}

/** A file attached to the document. Its content is `text`, encoded in UTF-8. */
export interface Attachment {
  readonly name: string
  readonly mediaType: string
  readonly description: string
  readonly text: string
}

/** The overall result: "good" only if the VAT ID was valid and every supplied field matches. */
export type Tone = "good" | "mixed" | "bad"

/** The content as plain data, which can be sent to another thread. `issuedAt` is in milliseconds since 1970. */
export interface ReceiptDocument {
  readonly language: ReceiptLanguage
  readonly receiptId: string
  readonly issuedAt: number
  readonly issuer: string
  readonly title: string
  /** The mark of a simulated receipt; null for a live one. */
  readonly mark: ReceiptText["sandbox"] | null
  readonly law: string
  readonly tone: Tone
  readonly headline: string
  /** The result of the comparison of company data. The headline is only about the VAT ID. */
  readonly compared: string
  readonly lead: ReadonlyArray<string>
  readonly sections: ReadonlyArray<Section>
  readonly attachments: ReadonlyArray<Attachment>
  /** The words before the page number and before the number of pages: `Page` and `of`. */
  readonly page: readonly [string, string]
}

const texts: Readonly<Record<ReceiptLanguage, ReceiptText>> = { en: receiptInEnglish, de: receiptInGerman }

export const receiptDocument = (record: ReceiptRecord, language: ReceiptLanguage): ReceiptDocument => {
  const text = texts[language]
  const { receipt } = record
  const compared = comparedData(record)
  const mark = receipt.sandbox === true ? text.sandbox : null
  return {
    language,
    receiptId: receipt.receipt_id,
    issuedAt: DateTime.toEpochMillis(receipt.issued_at),
    issuer: receipt.source,
    title: mark === null ? text.title : `${mark.title}. ${text.title}`,
    mark,
    law: text.law,
    tone: toneOf(receipt.result.valid, compared),
    headline: text.headline(receipt.target_vat_id, receipt.result.valid),
    compared: text.compared(compared),
    lead: [
      mark === null ? text.answered(moment(text, wholeSeconds(record.bzstAnsweredAt))) : mark.text,
      ...(record.bzstStatus === plainlyValid ? [] : [meaningOf(record, text)]),
      text.notOfTheAuthority
    ],
    sections: sectionsOf(record, language),
    attachments: attachmentsOf(record, text),
    page: text.page
  }
}

/** The BZSt's status for a valid VAT ID without further remarks. Its meaning is not repeated below the headline. */
const plainlyValid = "evatr-0000"

const sectionsOf = (record: ReceiptRecord, language: ReceiptLanguage): ReadonlyArray<Section> => {
  const text = texts[language]
  const { headings, paragraphs } = text
  const { receipt_id } = record.receipt
  return [
    { heading: headings.confirmation, blocks: [{ _tag: "Facts", facts: confirmationFacts(record, language) }] },
    {
      heading: headings.comparison,
      blocks: [
        { _tag: "Comparison", columns: text.columns, rows: comparison(record, text) },
        { _tag: "Paragraph", text: paragraphs.comparison },
        { _tag: "Facts", facts: meaningsOfResults(text) }
      ]
    },
    {
      heading: headings.official,
      blocks: [
        { _tag: "Facts", facts: officialFacts(record, text) },
        ...(isDisclosed(record) ? [{ _tag: "Paragraph" as const, text: paragraphs.official }] : [])
      ]
    },
    { heading: headings.proves, blocks: [{ _tag: "Points", points: text.proves(record.position) }] },
    { heading: headings.provesNot, blocks: [{ _tag: "Points", points: text.provesNot }] },
    { heading: headings.verify, blocks: [{ _tag: "Steps", steps: text.verify(receipt_id) }] },
    {
      heading: headings.record,
      blocks: [
        { _tag: "Paragraph", text: paragraphs.record },
        { _tag: "Facts", facts: recordFacts(record, text) }
      ]
    },
    {
      heading: headings.exchange,
      blocks: [
        { _tag: "Facts", facts: exchangeFacts(record, text) },
        { _tag: "Paragraph", text: paragraphs.exchange },
        { _tag: "Exact", label: text.labels.request, text: excerpt(record.evidence.request, text) },
        { _tag: "Exact", label: text.labels.response, text: excerpt(record.evidence.response, text) },
        { _tag: "Attachments", label: text.labels.attachments }
      ]
    }
  ]
}

const confirmationFacts = (record: ReceiptRecord, language: ReceiptLanguage): ReadonlyArray<Fact> => {
  const text = texts[language]
  const { receipt } = record
  const fact = factIn(text)
  return [
    fact.code("receiptId", receipt.receipt_id),
    fact.words("issuedAt", moment(text, DateTime.formatIso(receipt.issued_at))),
    fact.words("issuedBy", text.issuedBy(receipt.source)),
    fact.words("target", withCountry(receipt.target_vat_id, language)),
    fact.words("requester", receipt.requester_vat_id === null ? text.none : withCountry(receipt.requester_vat_id, language)),
    ...(receipt.reference === null ? [] : [fact.words("reference", visible(receipt.reference))]),
    fact.words("result", text.valid(receipt.result.valid)),
    fact.code("status", record.bzstStatus),
    fact.words("statusMeaning", meaningOf(record, text)),
    ...(record.validFrom === null ? [] : [fact.words("validFrom", date(text, record.validFrom))]),
    ...(record.validUntil === null ? [] : [fact.words("validUntil", date(text, record.validUntil))]),
    fact.words("answeredAt", moment(text, record.bzstAnsweredAt)),
    receipt.bzst_request_id === null ? fact.words("requestId", text.none) : fact.code("requestId", receipt.bzst_request_id)
  ]
}

const isDisclosed = ({ receipt: { result } }: ReceiptRecord) => result.official_name !== "" || result.official_address !== ""

const officialFacts = ({ receipt }: ReceiptRecord, text: ReceiptText): ReadonlyArray<Fact> => {
  const { official_address, official_name } = receipt.result
  const fact = factIn(text)
  return [
    fact.words("officialName", visible(official_name) || text.notDisclosed),
    fact.words("officialAddress", visible(official_address) || text.notDisclosed)
  ]
}

const recordFacts = (record: ReceiptRecord, text: ReceiptText): ReadonlyArray<Fact> => {
  const fact = factIn(text)
  return [
    fact.code("position", String(record.position)),
    fact.words("recordedAt", moment(text, record.recordedAt)),
    fact.code("eventId", record.eventId),
    fact.code("account", record.accountId),
    fact.code("key", record.keyId)
  ]
}

const exchangeFacts = ({ calls, evidence }: ReceiptRecord, text: ReceiptText): ReadonlyArray<Fact> => {
  const fact = factIn(text)
  return [
    ...calls.flatMap(({ durationMs, startedAt }) => [
      fact.words("askedAt", moment(text, startedAt)),
      fact.words("duration", text.milliseconds(durationMs))
    ]),
    fact.code("httpStatus", String(evidence.httpStatus)),
    fact.code("sha256", evidence.responseSha256)
  ]
}

const factIn = (text: ReceiptText) => {
  const make = (kind: Fact["kind"]) => (label: ReceiptLabel, value: string) => ({ label: text.labels[label], value, kind })
  return { words: make("words"), code: make("code") }
}

const fieldsOf = ({ receipt: { input, result } }: ReceiptRecord) =>
  [
    { name: "company_name", supplied: input.company_name, word: result.name_match },
    { name: "company_street", supplied: input.company_street, word: result.street_match },
    { name: "company_zip", supplied: input.company_zip, word: result.zip_match },
    { name: "company_city", supplied: input.company_city, word: result.city_match }
  ] as const

const comparison = (record: ReceiptRecord, text: ReceiptText): ReadonlyArray<ComparedField> =>
  fieldsOf(record).map(({ name, supplied, word }) => ({
    field: text.fields[name],
    supplied: visible(supplied) || text.notSupplied,
    result: text.matches[word].name,
    word
  }))

const comparedData = (record: ReceiptRecord): ComparedData => {
  const words = fieldsOf(record).flatMap(({ supplied, word }) => (supplied === "" ? [] : [word]))
  const mismatches = words.filter((word) => word === "mismatch").length
  const matches = words.filter((word) => word === "match").length
  return { supplied: words.length, mismatches, uncompared: words.length - mismatches - matches }
}

const toneOf = (valid: boolean, { mismatches, uncompared }: ComparedData): Tone => {
  if (!valid) return "bad"
  return mismatches + uncompared === 0 ? "good" : "mixed"
}

const meaningsOfResults = (text: ReceiptText): ReadonlyArray<Fact> =>
  Object.values(text.matches).map(({ meaning, name }) => ({ label: name, value: meaning, kind: "words" }))

/** Returns the meaning of the BZSt's status; the status itself if it is unknown. */
const meaningOf = ({ bzstStatus, validFrom, validUntil }: ReceiptRecord, text: ReceiptText): string => {
  const inWords = (iso: string | null) => (iso === null ? null : date(text, iso))
  return text.statuses[bzstStatus]?.({ from: inWords(validFrom), until: inWords(validUntil) }) ?? bzstStatus
}

const encodeReceipt = Schema.encodeSync(Schema.toCodecJson(Receipt))

const attachmentsOf = ({ evidence, receipt }: ReceiptRecord, { attachments }: ReceiptText): ReadonlyArray<Attachment> => {
  const file = (suffix: string, description: string, text: string): Attachment => ({
    name: `${receipt.receipt_id}${suffix}.json`,
    mediaType: "application/json",
    description,
    text
  })
  return [
    file("", attachments.receipt, JSON.stringify(encodeReceipt(receipt))),
    file("-question", attachments.request, evidence.request),
    file("-answer", attachments.response, evidence.response)
  ]
}

/**
 * Maximum number of printed characters of a request or response.
 * Requests have a few hundred; a faulty response may be far longer.
 */
const printedCharacters = 12_000

const excerpt = (bytes: string, text: ReceiptText): string => {
  const cut = bytes.length - printedCharacters
  return visible(cut > 0 ? `${bytes.slice(0, printedCharacters).toWellFormed()}\n${text.more(cut)}` : bytes)
}

/** Replaces invisible and layout-changing characters by their code points, so that the reader sees the true text. */
const visible = (text: string): string => text.replace(/[^\n\P{C}]|[\p{Zl}\p{Zp}]/gu, (character) => codePoint(character))

/** Returns the code point of a character in brackets: `[U+202E]`. */
export const codePoint = (character: string): string =>
  `[U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`

const withCountry = (vatId: string, language: ReceiptLanguage): string => {
  const alpha2 = memberStates.get(vatId.slice(0, 2))?.alpha2
  const name = alpha2 === undefined ? undefined : new Intl.DisplayNames([language], { type: "region" }).of(alpha2)
  return name === undefined ? vatId : `${vatId} (${name})`
}

/** Returns an ISO date such as `2026-11-21` in words. */
const date = (text: ReceiptText, iso: string): string => {
  const [year = "", month = "", day = ""] = iso.split("-")
  return text.date(Number(day), text.months[Number(month) - 1] ?? month, year)
}

/** Returns an ISO time such as `2026-11-21T01:33:04.564Z` in words, with all its digits. */
const moment = (text: ReceiptText, iso: string): string => {
  const [day = "", clock = ""] = iso.split("T")
  return text.moment(date(text, day), clock.replace("Z", ""))
}

const wholeSeconds = (iso: string): string => iso.replace(/\.\d+/u, "")

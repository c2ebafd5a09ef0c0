/** Receipts: stored answers of the BZSt about a company's data (rules 2, 27-35). */
import { Schema } from "effect"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import { AnswerFacts, Attempt, Disclosure, Reference } from "#domain/vat/Verdict.ts"

/** The BZSt's letter for the comparison of a field: A match, B no match, C not queried, D not disclosed by the source. */
export const MatchLetter = Schema.Literals(["A", "B", "C", "D"])
export type MatchLetter = typeof MatchLetter.Type

/** The comparison of a field in words, as responses show it. */
export const MatchWord = Schema.Literals(["match", "mismatch", "not_queried", "not_provided"])
export type MatchWord = typeof MatchWord.Type

const words = { A: "match", B: "mismatch", C: "not_queried", D: "not_provided" } as const satisfies Record<MatchLetter, MatchWord>
const letters = { match: "A", mismatch: "B", not_queried: "C", not_provided: "D" } as const satisfies Record<
  MatchWord,
  MatchLetter
>

/** Returns the BZSt's letter for a word. */
export const letterOf = (word: MatchWord): MatchLetter => letters[word]

/**
 * Returns the word for a field. A field that was not supplied is `not_queried`. A supplied field without a letter is `not_provided`: the
 * BZSt compares only in a qualified answer for a valid VAT ID.
 */
export const wordOf = (letter: MatchLetter | null, supplied: string | null): MatchWord => {
  if (supplied === null) return "not_queried"
  return letter === null ? "not_provided" : words[letter]
}

const Matches = {
  name_match: MatchWord,
  street_match: MatchWord,
  zip_match: MatchWord,
  city_match: MatchWord
}

/** Marks a receipt of a sandbox. A live receipt lacks the field. */
const sandbox = Schema.optionalKey(
  Schema.Literal(true).annotate({ description: "Only in a sandbox: the receipt is simulated and no evidence" })
)

/** A receipt as callers see it. Fields that were not supplied, and names that no source disclosed, are empty strings. */
export const Receipt = Schema.Struct({
  receipt_id: Schema.String,
  target_vat_id: Schema.String,
  requester_vat_id: Schema.NullOr(Schema.String),
  reference: Schema.NullOr(Schema.String).annotate({
    description: "The caller's own text from the parameter `reference`; null without one"
  }),
  input: Schema.Struct({
    company_name: Schema.String,
    company_street: Schema.String,
    company_zip: Schema.String,
    company_city: Schema.String
  }),
  result: Schema.Struct({
    valid: Schema.Boolean,
    ...Matches,
    official_name: Schema.String,
    official_address: Schema.String
  }),
  bzst_request_id: Schema.NullOr(Schema.String),
  issued_at: Schema.DateTimeUtcFromString,
  source: Schema.String,
  sandbox
})
export type Receipt = typeof Receipt.Type

/** A receipt in a list: without company data and official names. */
export const ReceiptSummary = Schema.Struct({
  receipt_id: Schema.String,
  target_vat_id: Schema.String,
  ...Matches,
  issued_at: Schema.DateTimeUtcFromString,
  sandbox
})
export type ReceiptSummary = typeof ReceiptSummary.Type

export const summaryOf = ({ issued_at, receipt_id, result, target_vat_id }: Issued["receipt"]): ReceiptSummary => {
  const { city_match, name_match, street_match, zip_match } = result
  return { receipt_id, target_vat_id, name_match, street_match, zip_match, city_match, issued_at }
}

/** Returns the supplied data, with empty strings for missing fields. */
export const inputOf = ({ city, name, street, zip }: CompanyData): Receipt["input"] => ({
  company_name: name ?? "",
  company_street: street ?? "",
  company_zip: zip ?? "",
  company_city: city ?? ""
})

/** Returns the name of a receipt's stream. The first event is ReceiptIssued; the events of the receipt's links follow. */
export const receiptStream = (receiptId: string): string => `receipt-${receiptId}`

/**
 * Returns the name of the list of an owner's receipts: all of them, or only those about `targetVatId`. The owner is an API key or an
 * account. The SQL function `vatproof.listed_rows` writes the lists whose owner is an API key.
 */
export const receiptList = (ownerId: string, targetVatId: string | null): string =>
  targetVatId === null ? `receipts-${ownerId}` : `receipts-${ownerId}/${targetVatId}`

const { input, reference: _, result, sandbox: __, ...receiptFacts } = Receipt.fields
const { official_address, official_name, ...resultFacts } = result.fields

const issued = Schema.Struct({
  account_id: Schema.String,
  key_id: Schema.String,
  receipt: Schema.Struct({ ...receiptFacts, result: Schema.Struct(resultFacts) }),
  answer: AnswerFacts,
  attempts: Schema.Array(Attempt),
  ...DomainEvent.personalDigest
})
type Issued = typeof issued.Type

/**
 * The personal data of a receipt: supplied company data, registered name and
 * address, exact exchange with the BZSt, and the caller's reference.
 */
const ReceiptDisclosure = Schema.Struct({
  ...Disclosure.fields,
  ...Reference.fields,
  input,
  official_name,
  official_address
})

/** A receipt was issued. `answer` has the time and status (`code`) of the BZSt. The personal document has the exact exchange. */
export const ReceiptIssued = DomainEvent.definePersonal(["ReceiptIssued", 1, issued], ReceiptDisclosure, "receipts")

/** Returns a receipt or summary with the mark of a sandbox, if `isSandbox`. */
export const marked = <A extends Receipt | ReceiptSummary>(receipt: A, isSandbox: boolean): A =>
  isSandbox ? { ...receipt, sandbox: true } : receipt

/** Returns the whole receipt: the event's part joined with the personal document's part. */
export const wholeReceipt = ({ receipt }: Issued, disclosed: typeof ReceiptDisclosure.Type): Receipt => {
  const { input, official_address, official_name, reference } = disclosed
  return {
    ...receipt,
    reference: reference ?? null,
    input,
    result: { ...receipt.result, official_name, official_address }
  }
}

const refused = Schema.Struct({
  account_id: Schema.String,
  key_id: Schema.String,
  target_vat_id: Schema.String,
  requester_vat_id: Schema.String,
  code: Schema.String,
  attempts: Schema.Array(Attempt),
  ...DomainEvent.personalDigest
})

/**
 * The BZSt refused a confirmation to this requester. `code` is the status of the BZSt. The refusal says nothing about the VAT ID. The
 * event has a personal document only if the caller sent a `reference`.
 */
export const ConfirmationRefused = DomainEvent.definePersonal(["ConfirmationRefused", 1, refused], Reference, "answers")

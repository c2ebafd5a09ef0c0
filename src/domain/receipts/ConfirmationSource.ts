/** The BZSt as the only source of qualified confirmations (rules 27, 30). */
import { Context, type Effect, Schema } from "effect"
import type { CompanyData } from "#domain/receipts/ConfirmationRules.ts"
import type { MatchLetter } from "#domain/receipts/Receipt.ts"
import type { SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import { type Answer, Attempt } from "#domain/vat/Verdict.ts"

export interface ConfirmationQuestion {
  readonly vatId: VatId
  readonly requester: VatId
  readonly company: CompanyData
}

/**
 * A verdict with the comparison of the company data. `letters` has the result for each field. All letters are null unless the
 * answer is qualified and the VAT ID valid. `requestId` is the BZSt's number of the request.
 */
export interface Confirmed {
  readonly answer: Answer
  readonly requestId: string | null
  readonly letters: Readonly<Record<keyof CompanyData, MatchLetter | null>>
  readonly attempts: ReadonlyArray<Attempt>
}

/** The BZSt refuses to answer this requester about this VAT ID, and would refuse again. `meaning` explains the status `code`. */
export class ConfirmationRefusal extends Schema.TaggedError<ConfirmationRefusal>()("ConfirmationRefusal", {
  code: Schema.String,
  meaning: Schema.String,
  attempts: Schema.Array(Attempt)
}) {
  override get message() {
    return `The BZSt refused the confirmation (${this.code}): ${this.meaning}. This says nothing about the VAT ID, and no validation was charged`
  }
}

export class ConfirmationSource extends Context.Service<
  ConfirmationSource,
  { readonly confirm: (question: ConfirmationQuestion) => Effect.Effect<Confirmed, ConfirmationRefusal | SourcesUnavailable> }
>()("vatproof/domain/receipts/ConfirmationSource") {}

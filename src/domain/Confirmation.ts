/** Qualified confirmation (§ 18e UStG): who may have one, for which VAT ID (INTERFACE 4.3, DECISIONS 10). */
import { Effect, Option, Schema } from "effect"
import type { Caller } from "#domain/Caller.ts"
import { isPaid } from "#domain/Plan.ts"
import { isGerman, parseGerman, type VatId } from "#domain/VatId.ts"

/** What the caller knows of the company; null means not supplied. At least one is supplied when a confirmation is asked for. */
export interface CompanyData {
  readonly name: string | null
  readonly street: string | null
  readonly zip: string | null
  readonly city: string | null
}

/** Null if nothing was supplied; an empty field counts as not supplied. */
export const companyData = (fields: { [K in keyof CompanyData]: string | undefined }): CompanyData | null => {
  const supplied = (text: string | undefined) => (text === undefined || text.trim() === "" ? null : text)
  const data = {
    name: supplied(fields.name),
    street: supplied(fields.street),
    zip: supplied(fields.zip),
    city: supplied(fields.city)
  }
  return Object.values(data).every((field) => field === null) ? null : data
}

/** An anonymous caller asked for what needs an API key. */
export class ApiKeyRequired extends Schema.TaggedError<ApiKeyRequired>()("ApiKeyRequired", { message: Schema.String }) {}

export class PaidPlanRequired extends Schema.TaggedError<PaidPlanRequired>()("PaidPlanRequired", {}) {
  override get message() {
    return "Qualified confirmations are part of the paid plans"
  }
}

export class ConfirmationUnsupported extends Schema.TaggedError<ConfirmationUnsupported>()("ConfirmationUnsupported", {
  message: Schema.String
}) {}

export class InvalidRequester extends Schema.TaggedError<InvalidRequester>()("InvalidRequester", {}) {
  override get message() {
    return "requester_vat_id must be your own German VAT ID: DE followed by 9 digits"
  }
}

/** Which VAT IDs this operator sends to the BZSt for confirmation: German ones, or those of all member states. */
export const ConfirmationCountries = Schema.Literals(["DE", "EU"])
export type ConfirmationCountries = typeof ConfirmationCountries.Type

/** A question as the caller put it. */
interface Asked {
  readonly caller: Caller
  readonly requesterVatId: string | null
  readonly company: CompanyData | null
}

/** The refusals in their order; on success all that a confirmation needs. */
export const admitConfirmation = Effect.fnUntraced(function* (asked: Asked, vatId: VatId, countries: ConfirmationCountries) {
  const { caller, company } = asked
  if (caller._tag === "Anonymous") {
    return yield* new ApiKeyRequired({ message: "A qualified confirmation needs an API key of a paid plan" })
  }
  if (!isPaid(caller.plan)) return yield* new PaidPlanRequired({})
  if (countries === "DE" && !isGerman(vatId)) {
    return yield* new ConfirmationUnsupported({ message: "A qualified confirmation can be had for German VAT IDs only" })
  }
  const requester = Option.flatMap(Option.fromNullOr(asked.requesterVatId), parseGerman)
  if (Option.isNone(requester) || company === null) return yield* new InvalidRequester({})
  return { caller, vatId, requester: requester.value, company }
})

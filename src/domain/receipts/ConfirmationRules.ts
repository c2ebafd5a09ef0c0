/** Qualified confirmation (§ 18e UStG): the rules on caller and VAT ID (rule 26). */
import { Option, Result, Schema } from "effect"
import type { Caller, KeyCaller } from "#domain/callers/Caller.ts"
import { isMember } from "#domain/vat/MemberStates.ts"
import { isPaid, PlanName } from "#domain/callers/PlanLimits.ts"
import { isGerman, parseGerman, type VatId } from "#domain/vat/VatId.ts"

/** The caller's data on the company; null means not supplied. A confirmation request has at least one field. */
export interface CompanyData {
  readonly name: string | null
  readonly street: string | null
  readonly zip: string | null
  readonly city: string | null
}

/** Returns null if nothing was supplied; an empty field counts as not supplied. */
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

/** An anonymous caller requested something that needs an API key. */
export class ApiKeyRequired extends Schema.TaggedError<ApiKeyRequired>()("ApiKeyRequired", { message: Schema.String }) {}

export class PaidPlanRequired extends Schema.TaggedError<PaidPlanRequired>()("PaidPlanRequired", {
  plan: PlanName,
  /** The plan's validations per month. */
  limit: Schema.Int
}) {
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

/** The VAT IDs that this operator sends to the BZSt for confirmation: German ones, or those of all member states. */
export const ConfirmationCountries = Schema.Literals(["DE", "EU"])
export type ConfirmationCountries = typeof ConfirmationCountries.Type

/** A confirmation request. */
interface ConfirmationQuestion {
  readonly caller: Caller
  readonly requesterVatId: string | null
  readonly company: CompanyData
}

/** A request that passed the rules. */
export interface AdmittedConfirmation {
  readonly caller: KeyCaller
  readonly vatId: VatId
  readonly requester: VatId
  readonly company: CompanyData
}

/** Checks who may request a confirmation for which VAT ID; returns the first refusal. */
export const admitConfirmation = (
  { caller, company, requesterVatId }: ConfirmationQuestion,
  vatId: VatId,
  countries: ConfirmationCountries
): Result.Result<AdmittedConfirmation, ApiKeyRequired | PaidPlanRequired | ConfirmationUnsupported | InvalidRequester> => {
  if (caller._tag === "Anonymous") {
    return Result.fail(new ApiKeyRequired({ message: "A qualified confirmation needs an API key of a paid plan" }))
  }
  if (!isPaid(caller.plan)) return Result.fail(new PaidPlanRequired({ plan: caller.plan, limit: caller.limit }))
  if (countries === "DE" && !isGerman(vatId)) {
    return Result.fail(new ConfirmationUnsupported({ message: "Qualified confirmations are available for German VAT IDs only" }))
  }
  if (!isMember(vatId.memberState)) {
    return Result.fail(
      new ConfirmationUnsupported({ message: "Qualified confirmations are available for EU member states only" })
    )
  }
  return Result.fromOption(
    Option.map(Option.flatMap(Option.fromNullOr(requesterVatId), parseGerman), (requester) => ({
      caller,
      vatId,
      requester,
      company
    })),
    () => new InvalidRequester({})
  )
}

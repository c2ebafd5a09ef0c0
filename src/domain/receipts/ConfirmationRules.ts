/** Decides who may request a qualified confirmation (§ 18e UStG) of which VAT ID (rule 26). */
import { Option, Result, Schema } from "effect"
import type { Caller, KeyCaller } from "#domain/callers/Caller.ts"
import { isMember } from "#domain/vat/MemberStates.ts"
import { onPaidPlan, type PaidPlanRequired } from "#domain/callers/PaymentRequired.ts"
import { isGerman, parseGerman, type VatId } from "#domain/vat/VatId.ts"

/** The company data that the caller supplied for comparison; null for a field that was not supplied. At least one field is set. */
export interface CompanyData {
  readonly name: string | null
  readonly street: string | null
  readonly zip: string | null
  readonly city: string | null
}

/** Returns the supplied company data; null without any. A blank field counts as not supplied. */
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

/** A caller without an API key requested a feature that needs one. */
export class ApiKeyRequired extends Schema.TaggedError<ApiKeyRequired>()("ApiKeyRequired", { message: Schema.String }) {}

/** The VAT ID cannot be confirmed. The message says which VAT IDs can. */
export class ConfirmationUnsupported extends Schema.TaggedError<ConfirmationUnsupported>()("ConfirmationUnsupported", {
  message: Schema.String
}) {}

/** The VAT IDs that the operator allows to be confirmed, or to be requesters: only German ones, or those of all member states. */
export const Countries = Schema.Literals(["DE", "EU"])
export type Countries = typeof Countries.Type

const requesters: Readonly<Record<Countries, string>> = {
  DE: "must be your own German VAT ID: DE followed by 9 digits",
  EU: "must be your own VAT ID: of an EU member state or of Northern Ireland (XI), with its prefix unless it is German"
}

/** The requester's VAT ID is missing, or it is not one of the `allowed` ones. */
export class InvalidRequester extends Schema.TaggedError<InvalidRequester>()("InvalidRequester", { allowed: Countries }) {
  override get message() {
    return `requester_vat_id ${requesters[this.allowed]}`
  }
}

/** A request for a confirmation, before the rules are checked. */
interface RequestedConfirmation {
  readonly caller: Caller
  readonly requesterVatId: string | null
  readonly company: CompanyData
}

/** A request that the rules allow. */
export interface AdmittedConfirmation {
  readonly caller: KeyCaller
  readonly vatId: VatId
  readonly requester: VatId
  readonly company: CompanyData
}

/** Returns the request if the rules allow it, otherwise the first refusal in the order of rule 26. */
export const admitConfirmation = (
  { caller, company, requesterVatId }: RequestedConfirmation,
  vatId: VatId,
  countries: Countries
): Result.Result<AdmittedConfirmation, ApiKeyRequired | PaidPlanRequired | ConfirmationUnsupported | InvalidRequester> => {
  if (caller._tag === "Anonymous") {
    return Result.fail(new ApiKeyRequired({ message: "A qualified confirmation needs an API key of a paid plan" }))
  }
  const paid = onPaidPlan(caller)
  if (Result.isFailure(paid)) return Result.fail(paid.failure)
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
    () => new InvalidRequester({ allowed: "DE" })
  )
}

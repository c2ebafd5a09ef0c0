/** Qualified confirmation (§ 18e UStG): who may have one, for which VAT ID (INTERFACE 4.3, DECISIONS 10). */
import { Context, Option, Result, Schema } from "effect"
import type { Caller } from "#domain/Caller.ts"
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
export class ConfirmationScope extends Context.Service<ConfirmationScope, { readonly countries: "DE" | "EU" }>()(
  "vatproof/domain/ConfirmationScope"
) {}

/** The refusals in their order; on success the requester's VAT ID. */
export const admitConfirmation = (
  caller: Caller,
  vatId: VatId,
  requesterVatId: string | null,
  countries: "DE" | "EU"
): Result.Result<VatId, ApiKeyRequired | PaidPlanRequired | ConfirmationUnsupported | InvalidRequester> => {
  if (caller._tag === "Anonymous") {
    return Result.fail(new ApiKeyRequired({ message: "A qualified confirmation needs an API key of a paid plan" }))
  }
  if (caller.plan === "free") return Result.fail(new PaidPlanRequired({}))
  if (countries === "DE" && !isGerman(vatId)) {
    return Result.fail(new ConfirmationUnsupported({ message: "A qualified confirmation can be had for German VAT IDs only" }))
  }
  return Option.match(Option.fromNullOr(requesterVatId).pipe(Option.flatMap(parseGerman)), {
    onNone: () => Result.fail(new InvalidRequester({})),
    onSome: (requester) => Result.succeed(requester)
  })
}

import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

/**
 * An operator read the personal documents of a VAT ID, a receipt or an account. `documents` is the number of documents.
 */
export const PersonalDataShown = DomainEvent.define(
  "PersonalDataShown",
  1,
  Schema.Struct({
    account_id: Schema.NullOr(Schema.String),
    documents: Schema.Int,
    receipt_id: Schema.NullOr(Schema.String),
    vat_id: Schema.NullOr(Schema.String)
  })
)

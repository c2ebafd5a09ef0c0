/** The event types of another product, which has no VAT IDs: a carrier logs its parcels. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

/** A parcel was sent. The personal document has the recipient. */
export const ParcelSent = DomainEvent.definePersonal(
  ["ParcelSent", 1, Schema.Struct({ parcel: Schema.String, grams: Schema.Int, ...DomainEvent.personalDigest })],
  Schema.Struct({ recipient: Schema.String }),
  "answers"
)

/** Returns the event of a sent parcel with a recipient. */
export const sent = (parcel: string) => ParcelSent.make({ parcel, grams: 500 }, { recipient: "Erika Muster" })

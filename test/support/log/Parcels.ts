/** Another product on the log, which has no VAT IDs: a carrier logs its parcels. Registers this product at the openings of the log. */
import { Effect, Layer, Predicate, Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"
import { at, eventTable, ExportCatalogue, inDocument, ofTypes, position, streamOf, text } from "#events/log/export/ExportTable.ts"
import { logProjections, TableProjections } from "#events/log/projections/TableProjection.ts"
import { EventTypes, logEventTypes } from "#events/log/store/EventTypes.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import * as AuditReads from "#events/log/verify/AuditReads.ts"
import { type SubjectCheck, SubjectChecks } from "#events/log/verify/SubjectCheck.ts"
import { execute } from "#test/support/MigratedDatabase.ts"

/** A parcel was sent. The personal document has the recipient. */
export const ParcelSent = DomainEvent.definePersonal(
  ["ParcelSent", 1, Schema.Struct({ parcel: Schema.String, grams: Schema.Int, ...DomainEvent.personalDigest })],
  Schema.Struct({ recipient: Schema.String }),
  "answers"
)

/** A parcel was delivered. */
export const ParcelDelivered = DomainEvent.define("ParcelDelivered", 1, Schema.Struct({ parcel: Schema.String }))

/** Returns the event of a sent parcel with a recipient. */
export const sent = (parcel: string) => ParcelSent.make({ parcel, grams: 500 }, { recipient: "Erika Muster" })

const parcelOf = (data: unknown) => (Predicate.hasProperty(data, "parcel") ? String(data.parcel) : null)

/** Reports the delivery of a parcel that was not sent. */
const deliveries: SubjectCheck = {
  types: [ParcelSent.type, ParcelDelivered.type],
  make: ({ findings }) => {
    const known = new Set<string | null>()
    return (event) => {
      const parcel = parcelOf(EventLine.readData(event))
      if (event.type === ParcelSent.type) known.add(parcel)
      else if (event.type === ParcelDelivered.type && !known.has(parcel))
        findings.add(event.position, `the parcel ${parcel} was delivered, but it was not sent`)
    }
  }
}

const exports: ExportCatalogue["Service"] = {
  tables: [
    eventTable(streamOf("Paket"), [text("parcel", "Paket", at("parcel"))]),
    {
      file: "parcels.csv",
      name: "Pakete",
      description: "Versendete Pakete",
      isRow: ofTypes(ParcelDelivered.type),
      columns: [
        position,
        text("parcel", "Paket", at("parcel")),
        text("grams", "Gewicht laut Versand", ({ facts }) => facts?.["grams"] ?? null)
      ]
    },
    {
      file: "personal/recipients.csv",
      name: "Empfänger",
      description: "Empfänger der Pakete",
      isRow: ({ personal }) => personal !== undefined,
      columns: [position, text("recipient", "Empfänger", inDocument("recipient"))]
    }
  ],
  proved: {
    folder: "deliveries",
    noun: "delivery",
    german: "jede Zustellung",
    english: "each delivery",
    type: ParcelDelivered.type,
    nameOf: ({ position }) => `delivery-${position}`
  },
  references: {
    folder: "sent",
    noun: "parcel",
    german: "der Versand jedes Pakets",
    english: "the event that sent each parcel",
    idOf: ({ data, event }) => (event.type === ParcelDelivered.type ? parcelOf(data) : null),
    factsOf: (id, type, data) =>
      type === ParcelSent.type && parcelOf(data) === id && Predicate.hasProperty(data, "grams")
        ? { grams: String(data.grams) }
        : null,
    makeFind: Effect.map(AuditReads.make, ({ events }) => (id, size) => {
      const isMeant = (event: StoredEvent) => event.type === ParcelSent.type && parcelOf(EventLine.readData(event)) === id
      return Effect.map(events(0, size), (all) => all.find(isMeant) ?? null)
    })
  }
}

/** Appends an event about a parcel, and returns its position. */
export const append = Effect.fnUntraced(function* (event: DomainEvent.DomainEvent) {
  const events = yield* EventStore
  return (yield* events.append({ stream: "parcels", expectedVersion: null, events: [event], charge: null })).position
})

/** The product has no projections but those of the log. The migrations of the service registered others. */
export const forgetOthers = execute("DELETE FROM vatproof.projections WHERE name NOT IN ('streams', 'meters')")

export const layer = Layer.mergeAll(
  Layer.succeed(EventTypes, [...logEventTypes, ParcelSent, ParcelDelivered]),
  Layer.succeed(TableProjections, logProjections),
  Layer.succeed(SubjectChecks, [deliveries]),
  Layer.succeed(ExportCatalogue, exports)
)

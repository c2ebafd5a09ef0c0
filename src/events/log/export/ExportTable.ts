/**
 * The CSV tables of an export, for import into an auditor's program. Names and descriptions are German, because German tax
 * auditors read them (GoBD, data media exchange). Every cell comes from an event, from its personal document, or from the facts of the
 * event that it refers to. A verifier can therefore recompute each table.
 */
import { Context, Effect, Predicate } from "effect"
import type { SqlClient } from "effect/sql"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { purposeIn } from "#domain/log/LogPurpose.ts"
import { quoted } from "#domain/text/CsvText.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import type * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Facts of an event that other events refer to, such as the issue of an API key. */
export type Facts = Readonly<Record<string, string>>

/** An event with its parsed data, its personal document, and the facts that it refers to (null without a reference). */
export interface ExportedEvent {
  readonly event: StoredEvent
  readonly data: unknown
  readonly personal: PersonalDocument.Stored
  readonly facts: Facts | null
}

/** A column. `cell` returns its value: text, a whole number, or a date as YYYY-MM-DD. */
export interface ExportColumn {
  readonly name: string
  readonly description: string
  readonly kind: "text" | "number" | "date"
  readonly cell: (row: ExportedEvent) => string | number | null
}

/**
 * A table. `isRow` selects the events that become rows. The first column of each table is the event's position, which is the
 * table's primary key.
 */
export interface ExportTable {
  readonly file: string
  readonly name: string
  readonly description: string
  readonly isRow: (row: ExportedEvent) => boolean
  readonly columns: ReadonlyArray<ExportColumn>
}

/** The events that the export also has as single files with a proof. `noun` names one in findings. */
interface SingleEvents {
  readonly folder: string
  readonly noun: string
  readonly german: string
  readonly english: string
}

/** What a product exports. Each type of events in `proved` and `references` has a folder of its own in the export. */
export class ExportCatalogue extends Context.Service<
  ExportCatalogue,
  {
    readonly tables: ReadonlyArray<ExportTable>
    /** The events of a type, each proved alone. `nameOf` returns the file name of an event without extension. */
    readonly proved: SingleEvents & { readonly type: string; readonly nameOf: (event: StoredEvent) => string }
    /**
     * The events that others refer to by an id. `factsOf` returns null for an event that does not have the facts of this id. `makeFind`
     * creates a function that returns the event with the facts of an id, as of the first `size` events of the log.
     */
    readonly references: SingleEvents & {
      readonly idOf: (read: Pick<ExportedEvent, "event" | "data">) => string | null
      readonly factsOf: (id: string, type: string, data: unknown) => Facts | null
      readonly makeFind: Effect.Effect<
        (id: string, size: number) => Effect.Effect<StoredEvent | null, StoreUnavailable>,
        never,
        SqlClient.SqlClient
      >
    }
  }
>()("vatproof/events/log/export/ExportCatalogue") {}

/**
 * Creates a function that returns the facts that an event refers to; null if it has no reference. It calls `find` once for each id, with
 * the first event that refers to the id.
 */
export const makeFactsOf = Effect.fnUntraced(function* <E, R>(
  find: (id: string, event: StoredEvent) => Effect.Effect<Facts | null, E, R>
) {
  const { references } = yield* ExportCatalogue
  const factsById = new Map<string, Facts | null>()
  return Effect.fnUntraced(function* (read: Pick<ExportedEvent, "event" | "data">) {
    const id = references.idOf(read)
    if (id === null) return null
    const before = factsById.get(id)
    if (before !== undefined) return before
    const facts = yield* find(id, read.event)
    factsById.set(id, facts)
    return facts
  })
})

export const delimiter = ";"
export const lineEnd = "\r\n"

/** Returns the header line: the names of the columns, separated by `by`. */
export const headerOf = ({ columns }: ExportTable, by = delimiter): string => columns.map(({ name }) => quoted(name)).join(by)

/** Returns the row of an event; null if the table has no row for the event. */
export const rowOf = ({ columns, isRow }: ExportTable, row: ExportedEvent, by = delimiter): string | null =>
  !isRow(row)
    ? null
    : columns
        .map(({ cell, kind }) => {
          const value = cell(row)
          if (value === null) return ""
          return kind === "text" ? quoted(String(value)) : String(value)
        })
        .join(by)

/** Returns the value at a path of object keys as text; null if the path has no text, number or boolean. */
export const textAt = (value: unknown, path: ReadonlyArray<string>): string | null => {
  const scalar = path.reduce<unknown>((inner, key) => (Predicate.hasProperty(inner, key) ? inner[key] : null), value)
  return typeof scalar === "string" || typeof scalar === "number" || typeof scalar === "boolean" ? String(scalar) : null
}

/** Creates a cell with the value at a path in the event's data. */
export const at =
  (...path: ReadonlyArray<string>) =>
  ({ data }: ExportedEvent) =>
    textAt(data, path)

/** Creates a cell with the value at a path in the personal document. */
export const inDocument =
  (...path: ReadonlyArray<string>) =>
  ({ personal }: ExportedEvent) =>
    typeof personal === "string" ? textAt(EventLine.readJson(personal), path) : null

export const ofTypes =
  (...types: ReadonlyArray<string>) =>
  ({ event }: ExportedEvent) =>
    types.includes(event.type)

export const text = (name: string, description: string, cell: ExportColumn["cell"]): ExportColumn => ({
  name,
  description,
  kind: "text",
  cell
})
export const number = (name: string, description: string, cell: ExportColumn["cell"]): ExportColumn => ({
  name,
  description,
  kind: "number",
  cell
})

export const position = number("position", "Fortlaufende, lückenlose Nummer des Ereignisses ab 0", ({ event }) => event.position)
export const recorded: ReadonlyArray<ExportColumn> = [
  {
    name: "recorded_on",
    description: "Tag der Speicherung (UTC)",
    kind: "date",
    cell: ({ event }) => event.recorded_at.slice(0, 10)
  },
  text("recorded_at", "Zeitpunkt der Speicherung (UTC, ISO 8601)", ({ event }) => event.recorded_at)
]
/** Creates a cell with a value of the event's metadata, such as the operator and the reason. */
export const inMetadata =
  (name: string) =>
  ({ event }: ExportedEvent) =>
    textAt(EventLine.readJson(event.metadata), [name])

export const units = number("units", "Berechnete Einheiten", ({ event }) => event.units)
/** The column of the stream, whose meaning the product describes. */
export const streamOf = (description: string) => text("stream_id", description, ({ event }) => event.stream_id)

/** The table of all events, with the column of the stream. `ofSubject` are the columns that a product adds. */
export const eventTable = (stream: ExportColumn, ofSubject: ReadonlyArray<ExportColumn>): ExportTable => ({
  file: "events.csv",
  name: "Ereignisse",
  description: "Alle gespeicherten Vorgänge in der Reihenfolge ihrer Speicherung",
  isRow: () => true,
  columns: [
    position,
    ...recorded,
    text("occurred_at", "Zeitpunkt des Vorgangs (UTC, ISO 8601)", ({ event }) => event.occurred_at),
    text("type", "Art des Vorgangs", ({ event }) => event.type),
    stream,
    number("version", "Fortlaufende Nummer innerhalb von stream_id, ab 1", ({ event }) => event.version),
    text("event_id", "Kennung des Ereignisses", ({ event }) => event.event_id),
    text("correlation_id", "Kennung der Anfrage, die den Vorgang ausgelöst hat", ({ event }) => event.correlation_id),
    text("meter_id", "Zähler, der belastet wurde", ({ event }) => event.meter_id),
    units,
    ...ofSubject,
    text("data", "Inhalt des Ereignisses (JSON)", ({ event }) => event.data),
    text("metadata", "Angaben zur Anfrage (JSON)", ({ event }) => event.metadata)
  ]
})

/** The folder with all personal data. The rest of an export can be verified without it. */
export const personalFolder = "personal"

const mark = text("sandbox", "Kein Nachweis: Alle Antworten sind simuliert", () => "SIMULIERT / SIMULATED")

/** Returns the tables of an export of the log with this name. In those of a sandbox each row has a mark. */
export const tablesOf = (tables: ReadonlyArray<ExportTable>, logName: string): ReadonlyArray<ExportTable> =>
  purposeIn(logName) === "live" ? tables : tables.map((table) => ({ ...table, columns: [...table.columns, mark] }))

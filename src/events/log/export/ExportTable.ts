/**
 * The CSV tables of an export, for import into an auditor's program. Names and descriptions are German, because German tax
 * auditors read them (GoBD, data media exchange). Every cell comes from an event, from its personal document, or from the event by
 * which the account got the API key. A verifier can therefore recompute each table.
 */
import { Option, Predicate, Schema } from "effect"
import { idForm } from "#domain/accounts/AccountDirectory.ts"
import { purposeIn } from "#domain/log/LogPurpose.ts"
import { quoted } from "#domain/text/CsvText.ts"
import { ApiKeyClaimed, ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import type * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * The id, account and prefix of an API key, from the event by which the account got the key: `ApiKeyIssued`, or `ApiKeyClaimed` if
 * the account claimed the key from another account.
 */
export interface KeyFacts {
  readonly keyId: string
  readonly accountId: string
  readonly prefix: string
}

/** An event with its parsed data, its personal document, and the API key that it concerns (null for an event without a key). */
export interface ExportedEvent {
  readonly event: StoredEvent
  readonly data: unknown
  readonly personal: PersonalDocument.Stored
  readonly key: KeyFacts | null
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
const textAt = (value: unknown, path: ReadonlyArray<string>): string | null => {
  const scalar = path.reduce<unknown>((inner, key) => (Predicate.hasProperty(inner, key) ? inner[key] : null), value)
  return typeof scalar === "string" || typeof scalar === "number" || typeof scalar === "boolean" ? String(scalar) : null
}

/** Creates a cell with the value at a path in the event's data. */
const at =
  (...path: ReadonlyArray<string>) =>
  ({ data }: ExportedEvent) =>
    textAt(data, path)

/** Creates a cell with the value at a path in the personal document. */
const inDocument =
  (...path: ReadonlyArray<string>) =>
  ({ personal }: ExportedEvent) =>
    typeof personal === "string" ? textAt(EventLine.readJson(personal), path) : null

const ofTypes =
  (...types: ReadonlyArray<string>) =>
  ({ event }: ExportedEvent) =>
    types.includes(event.type)

const text = (name: string, description: string, cell: ExportColumn["cell"]): ExportColumn => ({
  name,
  description,
  kind: "text",
  cell
})
const number = (name: string, description: string, cell: ExportColumn["cell"]): ExportColumn => ({
  name,
  description,
  kind: "number",
  cell
})

const position = number("position", "Fortlaufende, lückenlose Nummer des Ereignisses ab 0", ({ event }) => event.position)
const recorded: ReadonlyArray<ExportColumn> = [
  {
    name: "recorded_on",
    description: "Tag der Speicherung (UTC)",
    kind: "date",
    cell: ({ event }) => event.recorded_at.slice(0, 10)
  },
  text("recorded_at", "Zeitpunkt der Speicherung (UTC, ISO 8601)", ({ event }) => event.recorded_at)
]
/**
 * Returns the id of the API key that an event concerns; null if the event concerns no API key. The id is in the event's data, or in
 * the name of the event's stream (`key-` and the id).
 */
export const keyIdOf = ({ event, data }: Pick<ExportedEvent, "event" | "data">): string | null => {
  const id = textAt(data, ["key_id"]) ?? event.stream_id.replace(/^key-/u, "")
  return idForm.test(id) ? id : null
}

const decodeKey = Schema.decodeUnknownOption(
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String })
)

/**
 * Returns the id, account and prefix of an API key from an event `ApiKeyIssued` or `ApiKeyClaimed`; null for events of other types.
 */
export const keyFactsOf = (type: string, data: unknown): KeyFacts | null =>
  type !== ApiKeyIssued.type && type !== ApiKeyClaimed.type
    ? null
    : Option.getOrNull(
        Option.map(decodeKey(data), ({ account_id, key_id, prefix }) => ({ keyId: key_id, accountId: account_id, prefix }))
      )

/** Creates a cell with a value of the event's metadata, such as the operator and the reason. */
const inMetadata =
  (name: string) =>
  ({ event }: ExportedEvent) =>
    textAt(EventLine.readJson(event.metadata), [name])

/**
 * Columns for the account and the API key of an event. If the event's data does not name the account, the column has the account of
 * the API key.
 */
export const ofKey: ReadonlyArray<ExportColumn> = [
  text(
    "account_id",
    "Konto, das der Vorgang nennt, sonst das Konto, das den API-Schlüssel jetzt hat (Übernahmen: keys.csv)",
    (row) => at("account_id")(row) ?? row.key?.accountId ?? null
  ),
  text("key_id", "API-Schlüssel", keyIdOf),
  text(
    "key_prefix",
    "Die ersten 12 Zeichen des API-Schlüssels, wie er ausgestellt oder übernommen wurde (erneuert: keys.csv)",
    ({ key }) => key?.prefix ?? null
  )
]

const ofOperator: ReadonlyArray<ExportColumn> = [
  text("source", "api: Anfrage; cli: Befehl des Betreibers", inMetadata("source")),
  text("actor", "Wer den Befehl gegeben hat", inMetadata("actor")),
  text("reason", "Warum, laut Betreiber", inMetadata("reason"))
]

const units = number("units", "Berechnete Einheiten", ({ event }) => event.units)
const stream = text("stream_id", "Worum es geht: Konto, API-Schlüssel, Beleg, Quelle, Prüfer", ({ event }) => event.stream_id)

export const eventTable: ExportTable = {
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
    text("account_id", "Konto, soweit das Ereignis es nennt", at("account_id")),
    text("key_id", "API-Schlüssel, soweit das Ereignis einen betrifft", keyIdOf),
    text(
      "vat_id",
      "USt-IdNr., nach der gefragt wurde",
      (row) => at("vat_id")(row) ?? at("target_vat_id")(row) ?? at("receipt", "target_vat_id")(row)
    ),
    text("receipt_id", "Belegnummer", at("receipt", "receipt_id")),
    text("data", "Inhalt des Ereignisses (JSON)", ({ event }) => event.data),
    text("metadata", "Angaben zur Anfrage (JSON)", ({ event }) => event.metadata)
  ]
}

const verifications: ExportTable = {
  file: "verifications.csv",
  name: "Einfache Bestätigungsanfragen",
  description: "Prüfungen von USt-IdNrn. mit Antwort der Quelle, oder der Vermerk, dass keine Quelle antworten konnte",
  isRow: ofTypes("VatIdVerified", "VatIdVerificationFailed"),
  columns: [
    position,
    ...recorded,
    text("vat_id", "Geprüfte USt-IdNr.", at("vat_id")),
    text("outcome", "answered: beantwortet; unavailable: keine Quelle erreichbar", ({ event }) =>
      event.type === "VatIdVerified" ? "answered" : "unavailable"
    ),
    text("valid", "true: gültig; false: ungültig; leer: keine Antwort", at("valid")),
    text("source", "Quelle der Antwort: vies oder bzst", at("source")),
    text("served", "live: eben abgefragt; cache oder stale: frühere Antwort", at("served")),
    text("answered_at", "Zeitpunkt der Antwort laut Quelle (UTC)", at("answered_at")),
    number("answer_position", "Bei served cache oder stale: position des Vorgangs mit der Antwort", at("answer_position")),
    text("consultation_number", "Nummer der Abfrage bei VIES, falls erteilt", at("answer", "consultation_number")),
    text("requester_vat_id", "USt-IdNr. des Anfragenden, falls angegeben", at("requester_vat_id")),
    ...ofKey,
    stream,
    units
  ]
}

const receipts: ExportTable = {
  file: "receipts.csv",
  name: "Qualifizierte Bestätigungsanfragen",
  description: "Belege über qualifizierte Bestätigungen nach § 18e UStG, mit der Antwort des Bundeszentralamts für Steuern",
  isRow: ofTypes("ReceiptIssued"),
  columns: [
    position,
    ...recorded,
    text("receipt_id", "Belegnummer", at("receipt", "receipt_id")),
    text("issued_at", "Ausstellung des Belegs (UTC)", at("receipt", "issued_at")),
    text("target_vat_id", "Angefragte USt-IdNr.", at("receipt", "target_vat_id")),
    text("requester_vat_id", "USt-IdNr. des Anfragenden", at("receipt", "requester_vat_id")),
    text("valid", "true: gültig; false: ungültig", at("receipt", "result", "valid")),
    text("name_match", "Name: match, mismatch, not_queried oder not_provided", at("receipt", "result", "name_match")),
    text("street_match", "Straße, wie name_match", at("receipt", "result", "street_match")),
    text("zip_match", "Postleitzahl, wie name_match", at("receipt", "result", "zip_match")),
    text("city_match", "Ort, wie name_match", at("receipt", "result", "city_match")),
    text("bzst_request_id", "Kennung der Anfrage beim Bundeszentralamt", at("receipt", "bzst_request_id")),
    text("bzst_status", "Status laut Bundeszentralamt", at("answer", "code")),
    text("bzst_answered_at", "Zeitpunkt der Antwort laut Bundeszentralamt (UTC)", at("answer", "answered_at")),
    ...ofKey,
    units
  ]
}

const keys: ExportTable = {
  file: "keys.csv",
  name: "API-Schlüssel",
  description: "Ausgestellte, erneuerte, übernommene und gesperrte API-Schlüssel",
  isRow: ofTypes("ApiKeyIssued", "ApiKeyRotated", "ApiKeyReleased", "ApiKeyClaimed", "ApiKeyRevoked"),
  columns: [
    position,
    ...recorded,
    text(
      "what",
      "issued: ausgestellt; rotated: erneuert; released: an ein anderes Konto abgegeben; claimed: übernommen; revoked: gesperrt",
      ({ event }) => event.type.replace("ApiKey", "").toLowerCase()
    ),
    text("account_id", "Konto", at("account_id")),
    text("key_id", "API-Schlüssel", keyIdOf),
    text("key_prefix", "Die ersten 12 Zeichen des API-Schlüssels von da an", at("prefix")),
    text("previous_until", "Bei rotated: bis wann der vorige galt; leer: bis dahin", at("previous_until")),
    text("by", "Wer gesperrt hat: owner (Inhaber), operator (Betreiber) oder key (der Schlüssel selbst)", at("by")),
    ...ofOperator
  ]
}

const plans: ExportTable = {
  file: "plans.csv",
  name: "Tarife",
  description: "Eröffnete Konten und jede Änderung ihres Tarifs",
  isRow: ofTypes("AccountRegistered", "AccountSignedUp", "PlanChanged"),
  columns: [
    position,
    ...recorded,
    text("what", "opened: Konto eröffnet; changed: Tarif geändert", ({ event }) =>
      event.type === "PlanChanged" ? "changed" : "opened"
    ),
    text("account_id", "Konto", at("account_id")),
    text("plan", "Tarif von da an", at("plan")),
    number("per_month", "Abfragen je Monat, für dieses Konto vereinbart; leer: die des Tarifs", at("per_month")),
    ...ofOperator
  ]
}

/** The folder with all personal data. The rest of an export can be verified without it. */
export const personalFolder = "personal"

export const personalTable: ExportTable = {
  file: `${personalFolder}/personal.csv`,
  name: "Personenbezogene Angaben",
  description: "Namen, Anschriften, Referenzen und der genaue Austausch mit der Quelle, zu Vorgängen der anderen Tabellen",
  isRow: (row) => row.personal !== undefined,
  columns: [
    position,
    text("state", "kept: vorhanden; erased: gelöscht; leer: ohne", ({ personal }) =>
      personal === undefined ? null : personal === null ? "erased" : "kept"
    ),
    text("company_name", "Eingetragener Name laut Antwort", inDocument("company_name")),
    text("company_address", "Eingetragene Anschrift laut Antwort", inDocument("company_address")),
    text("reference", "Nummer einer Rechnung oder Bestellung, vom Anfragenden angegeben", inDocument("reference")),
    text("input_name", "Angefragter Name", inDocument("input", "company_name")),
    text("input_street", "Angefragte Straße", inDocument("input", "company_street")),
    text("input_zip", "Angefragte Postleitzahl", inDocument("input", "company_zip")),
    text("input_city", "Angefragter Ort", inDocument("input", "company_city")),
    text("official_name", "Eingetragener Name laut früherer Auskunft, soweit bekannt", inDocument("official_name")),
    text("official_address", "Eingetragene Anschrift laut früherer Auskunft, soweit bekannt", inDocument("official_address")),
    text("request", "Anfrage an die Quelle, wie sie gesendet wurde", inDocument("evidence", "request")),
    text("response", "Antwort der Quelle, wie sie eingegangen ist", inDocument("evidence", "response")),
    text("response_sha256", "SHA-256 der Antwort, wie sie eingegangen ist", inDocument("evidence", "response_sha256"))
  ]
}

export const exportTables: ReadonlyArray<ExportTable> = [eventTable, verifications, receipts, keys, plans, personalTable]

const mark = text("sandbox", "Kein Nachweis: Alle Antworten sind simuliert", () => "SIMULIERT / SIMULATED")

/** Returns the tables of an export of the log with this name. In those of a sandbox each row has a mark. */
export const tablesOf = (logName: string): ReadonlyArray<ExportTable> =>
  purposeIn(logName) === "live" ? exportTables : exportTables.map((table) => ({ ...table, columns: [...table.columns, mark] }))

/** The tables and the proved receipts of the service's exports. */
import { ReceiptIssued } from "#domain/receipts/Receipt.ts"
import { keyIdOf, keys } from "#events/audit/ExportedKeys.ts"
import {
  at,
  type ExportCatalogue,
  type ExportColumn,
  type ExportTable,
  eventTable as eventTableOf,
  inDocument,
  inMetadata,
  number,
  ofTypes,
  personalFolder,
  position,
  recorded,
  streamOf,
  text,
  units
} from "#events/log/export/ExportTable.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * Columns for the account and the API key of an event. If the event's data does not name the account, the column has the account of
 * the API key.
 */
export const ofKey: ReadonlyArray<ExportColumn> = [
  text(
    "account_id",
    "Konto, das der Vorgang nennt, sonst das Konto, das den API-Schlüssel jetzt hat (Übernahmen: keys.csv)",
    (row) => at("account_id")(row) ?? row.facts?.["accountId"] ?? null
  ),
  text("key_id", "API-Schlüssel", keyIdOf),
  text(
    "key_prefix",
    "Die ersten 12 Zeichen des API-Schlüssels, wie er ausgestellt oder übernommen wurde (erneuert: keys.csv)",
    ({ facts }) => facts?.["prefix"] ?? null
  )
]

const ofOperator: ReadonlyArray<ExportColumn> = [
  text("source", "api: Anfrage; cli: Befehl des Betreibers", inMetadata("source")),
  text("actor", "Wer den Befehl gegeben hat", inMetadata("actor")),
  text("reason", "Warum, laut Betreiber", inMetadata("reason"))
]

const stream = streamOf("Worum es geht: Konto, API-Schlüssel, Beleg, Quelle, Prüfer")

export const eventTable = eventTableOf(stream, [
  text("account_id", "Konto, soweit das Ereignis es nennt", at("account_id")),
  text("key_id", "API-Schlüssel, soweit das Ereignis einen betrifft", keyIdOf),
  text(
    "vat_id",
    "USt-IdNr., nach der gefragt wurde",
    (row) => at("vat_id")(row) ?? at("target_vat_id")(row) ?? at("receipt", "target_vat_id")(row)
  ),
  text("receipt_id", "Belegnummer", at("receipt", "receipt_id"))
])

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

const receiptTable: ExportTable = {
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

const keyTable: ExportTable = {
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

const planTable: ExportTable = {
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

/**
 * Returns the file name for a receipt, without extension: the receipt's id. If this id could be an unsafe file name, returns the
 * event's position instead.
 */
const receiptName = ({ position, stream_id }: StoredEvent): string =>
  /^receipt-([A-Z0-9]+(?:-[A-Z0-9]+)*)$/u.exec(stream_id)?.[1] ?? `position-${position}`

export const exportCatalogue: ExportCatalogue["Service"] = {
  tables: [eventTable, verifications, receiptTable, keyTable, planTable, personalTable],
  proved: {
    folder: "receipts",
    noun: "receipt",
    german: "jeder Beleg als Ereignis, wie in events.ndjson",
    english: "the event of each receipt, as in events.ndjson",
    type: ReceiptIssued.type,
    nameOf: receiptName
  },
  references: keys
}

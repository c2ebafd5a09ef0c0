/**
 * Formats the result of an auditor's search as CSV (RFC 4180). A row has the columns of the tables events.csv and personal.csv of
 * an export.
 */
import { keyIdOf, type KeyFacts } from "#events/audit/ExportedKeys.ts"
import { eventTable, ofKey, personalTable } from "#events/audit/ExportTables.ts"
import { type ExportTable, headerOf, lineEnd, rowOf } from "#events/log/export/ExportTable.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import type * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** RFC 4180 requires a comma; the export's tables use a semicolon for German spreadsheets. */
const delimiter = ","

const [, ...ofDocuments] = personalTable.columns
/**
 * The columns of events.csv, with the account and the prefix of the API key added. The event of a validation names only the id of
 * its API key.
 */
const ofEvents = eventTable.columns.flatMap((column) =>
  column.name === "account_id" ? ofKey : column.name === "key_id" ? [] : [column]
)
const searchTable: ExportTable = { ...eventTable, columns: [...ofEvents, ...ofDocuments] }

export const searchHeader = headerOf(searchTable, delimiter) + lineEnd

/** Returns the id of the API key that an event concerns; null if it concerns no key. */
export const keyOfEvent = (event: StoredEvent): string | null => keyIdOf({ event, data: EventLine.readData(event) })

export const searchRow = (event: StoredEvent, personal: PersonalDocument.Stored, keys: ReadonlyMap<string, KeyFacts>): string => {
  const data = EventLine.readData(event)
  const facts = keys.get(keyIdOf({ event, data }) ?? "") ?? null
  return (rowOf(searchTable, { event, data, personal, facts }, delimiter) ?? "") + lineEnd
}

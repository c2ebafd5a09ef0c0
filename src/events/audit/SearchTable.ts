/** What a search of the log is as CSV (RFC 4180): the table of all events as an export has it, with the personal documents beside them. */
import { eventTable, type ExportTable, headerOf, lineEnd, personalTable, rowOf } from "#events/audit/export/ExportTable.ts"
import * as EventLine from "#events/store/EventLine.ts"
import type * as PersonalDocument from "#events/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"

/** A semicolon is what the export's tables have, for German spreadsheets; RFC 4180 has a comma. */
const delimiter = ","

const [, ...ofDocuments] = personalTable.columns
const searchTable: ExportTable = { ...eventTable, columns: [...eventTable.columns, ...ofDocuments] }

export const searchHeader = headerOf(searchTable, delimiter) + lineEnd

export const searchRow = (event: StoredEvent, personal: PersonalDocument.Stored): string =>
  (rowOf(searchTable, { event, data: EventLine.readData(event), personal, key: null }, delimiter) ?? "") + lineEnd

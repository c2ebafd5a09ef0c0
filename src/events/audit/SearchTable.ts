/** The result of a log search as CSV (RFC 4180): the export's table of all events, with the personal documents beside them. */
import { eventTable, type ExportTable, headerOf, lineEnd, personalTable, rowOf } from "#events/audit/export/ExportTable.ts"
import * as EventLine from "#events/store/EventLine.ts"
import type * as PersonalDocument from "#events/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"

/** RFC 4180 requires a comma; the export's tables use a semicolon for German spreadsheets. */
const delimiter = ","

const [, ...ofDocuments] = personalTable.columns
const searchTable: ExportTable = { ...eventTable, columns: [...eventTable.columns, ...ofDocuments] }

export const searchHeader = headerOf(searchTable, delimiter) + lineEnd

export const searchRow = (event: StoredEvent, personal: PersonalDocument.Stored): string =>
  (rowOf(searchTable, { event, data: EventLine.readData(event), personal, key: null }, delimiter) ?? "") + lineEnd

/** What a search of the log is as CSV (RFC 4180): the table of all events, as an export has it. */
import { eventTable, headerOf, lineEnd, rowOf } from "#events/audit/ExportTable.ts"
import * as EventLine from "#events/log/EventLine.ts"
import type { StoredEvent } from "#events/StoredEvent.ts"

/** A semicolon is what the export's tables have, for German spreadsheets; RFC 4180 has a comma. */
const delimiter = ","

export const searchHeader = headerOf(eventTable, delimiter) + lineEnd

export const searchRow = (event: StoredEvent): string =>
  (rowOf(eventTable, { event, data: EventLine.readData(event), personal: undefined, key: null }, delimiter) ?? "") + lineEnd

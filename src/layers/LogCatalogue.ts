/** What the service registers at the openings of the log (src/events/log/README.md). */
import { Layer } from "effect"
import { eventTypes } from "#events/Catalogue.ts"
import { exportCatalogue } from "#events/audit/ExportTables.ts"
import { ExportCatalogue } from "#events/log/export/ExportTable.ts"
import { EventTypes } from "#events/log/store/EventTypes.ts"
import { TableProjections } from "#events/log/projections/TableProjection.ts"
import { SubjectChecks } from "#events/log/verify/SubjectCheck.ts"
import * as BatchAudit from "#events/pending/BatchAudit.ts"
import { tableProjections } from "#events/ProjectionCatalogue.ts"
import * as LiveAnswerAudit from "#events/vat/LiveAnswerAudit.ts"

export const logCatalogue = Layer.mergeAll(
  Layer.succeed(EventTypes, eventTypes),
  Layer.succeed(TableProjections, tableProjections),
  Layer.succeed(ExportCatalogue, exportCatalogue),
  Layer.succeed(SubjectChecks, [BatchAudit.check, LiveAnswerAudit.check])
)

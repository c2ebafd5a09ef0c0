/**
 * Verifies an export with the log's public key, without access to the database. Verifies every line, leaf hash, table row, receipt
 * and proof, and the signed root.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { LogAdopted } from "#domain/log/LogAdopted.ts"
import * as CheckpointAudit from "#events/log/verify/CheckpointAudit.ts"
import type { AuditReport } from "#events/log/verify/DatabaseAudit.ts"
import * as EventSchemas from "#events/log/verify/EventSchemas.ts"
import * as ExportFolder from "#events/log/export/ExportFolder.ts"
import * as ExportLines from "#events/log/export/ExportLines.ts"
import * as Manifest from "#events/log/export/ExportManifest.ts"
import { exportFiles } from "#events/log/export/ExportReadme.ts"
import {
  ExportCatalogue,
  type ExportedEvent,
  headerOf,
  lineEnd,
  makeFactsOf,
  personalFolder,
  rowOf,
  tablesOf
} from "#events/log/export/ExportTable.ts"
import * as SubjectCheck from "#events/log/verify/SubjectCheck.ts"
import * as DocumentAudit from "#events/log/verify/DocumentAudit.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import * as LineReader from "#events/log/export/LineReader.ts"
import * as LogCheck from "#events/log/verify/LogCheck.ts"
import { exactText } from "#events/log/verify/ExactText.ts"
import { edgesOf, erased } from "#events/log/export/LogExport.ts"
import * as ProvedFiles from "#events/log/export/ProvedFiles.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import type { Verifiers } from "#events/log/merkle/NoteKeys.ts"

/** `kept` are checkpoints of the log that were kept outside of the export. */
export interface ExportAuditOptions {
  readonly directory: string
  readonly kept: ReadonlyArray<CheckpointAudit.KeptCheckpoint>
  readonly verifiers: Verifiers
  readonly progress: (done: number, of: number) => Effect.Effect<void>
}

/** Maximum number of events that are read at once. */
const sectionSize = 2_048

export const run = Effect.fn("ExportAudit.run")(function* ({ directory, kept: notes, progress, verifiers }: ExportAuditOptions) {
  const crypto = yield* Crypto
  const findings = Findings.make()
  const { checkpoint, manifest, signedBy } = yield* open(directory, verifiers)
  const around = Option.getOrNull(Manifest.surroundings(manifest))
  if (around === null)
    return yield* new ExportFolder.NoExport({
      message: `${exportFiles.manifest} lacks the tree hashes for the positions before and after the export, so the export cannot be verified`
    })
  const check = LogCheck.make(crypto, findings, around.before)
  const files = yield* ProvedFiles.make(directory, verifiers, findings)
  const { proved } = yield* ExportCatalogue
  const factsOf = yield* makeFactsOf((id, { position }) => files.findFacts(id, position))
  const compareTime = makeCompareTime(manifest, findings)
  const compareSchema = yield* EventSchemas.make(findings)
  const documents = yield* makeDocuments(directory, findings)
  const tables = yield* makeTables(directory, manifest, documents !== null, findings)
  const compareSubjects = (yield* SubjectCheck.all).make({ crypto, findings, begins: manifest.from === 0 })
  const readSection = yield* ExportLines.make(directory, manifest, findings)

  const kept = CheckpointAudit.openKept(notes, CheckpointAudit.openWith(crypto, verifiers), findings)
  const checkpoints = CheckpointAudit.ofPart(findings, kept, manifest)
  const adopted: Array<number> = []
  let from = manifest.from
  for (const to of checkpoints.sectionEnds(sectionSize)) {
    const { leaves, read } = yield* readSection(from, to)
    check.take({ from, to, events: read.map(({ event }) => event), leaves })
    for (const one of read) {
      const personal = documents === null ? undefined : yield* documents.take(one)
      yield* tables.compare({ ...one, personal, facts: yield* factsOf(one) })
      compareTime(one.event)
      compareSchema(one.event)
      compareSubjects(one.event)
      if (one.event.type === LogAdopted.type) adopted.push(one.event.position)
      if (one.event.type === proved.type) yield* files.compareSingle(one.event, one.line)
    }
    checkpoints.compareAt(to, check)
    yield* progress(to - manifest.from, manifest.to - manifest.from)
    from = to
  }
  yield* readSection(manifest.to, manifest.to)
  yield* tables.finish
  if (documents !== null) yield* documents.finish
  for (const position of edgesOf(manifest)) {
    const recordedAt = yield* files.recordedAt(position)
    if (recordedAt !== null && isWithin(manifest, recordedAt))
      findings.add(position, `the export leaves out an event of its period, recorded at ${recordedAt}`)
  }
  files.finish()
  checkpoints.conclude(checkpoint, check, around.after)
  yield* ExportFolder.compareTexts(directory, manifest, findings)
  yield* ExportFolder.compareNames(directory, signedBy, findings)
  return {
    events: manifest.to - manifest.from,
    signed: manifest.to - manifest.from,
    checkpoints: 1,
    signedBy,
    documents: documents?.counts() ?? null,
    adopted,
    extent: manifest,
    findings: findings.list(),
    count: findings.count(),
    uncompared: checkpoints.uncompared
  } satisfies AuditReport & { readonly extent: Manifest.ExportManifest; readonly uncompared: ReadonlyArray<string> }
}, Effect.scoped)

/** Converts a time of the manifest (milliseconds) to a time of the log (microseconds). */
const micros = (millis: string) => millis.replace(/(?<=\.\d{3})Z$/u, "000Z")
const isWithin = ({ recorded_before, recorded_from }: Manifest.ExportManifest, recordedAt: string) =>
  (recorded_from === null || recordedAt >= micros(recorded_from)) &&
  (recorded_before === null || recordedAt < micros(recorded_before))

const makeCompareTime = (manifest: Manifest.ExportManifest, findings: Findings.Findings) => (event: StoredEvent) => {
  if (isWithin(manifest, event.recorded_at)) return
  findings.add(event.position, `the event was recorded at ${event.recorded_at}, outside of the period in ${exportFiles.manifest}`)
}

/**
 * Reads the manifest and the checkpoint of the export. Fails unless one of `verifiers` signed the checkpoint, and the positions in
 * the manifest fit the number of events in the checkpoint.
 */
const open = Effect.fnUntraced(function* (directory: string, verifiers: Verifiers) {
  const path = yield* Path.Path
  const crypto = yield* Crypto
  const read = (name: string) =>
    exactText(path.join(directory, name)).pipe(
      Effect.catchTag("PlatformError", () =>
        Effect.fail(new ExportFolder.NoExport({ message: `${directory} has no ${name}: the export is incomplete` }))
      ),
      Effect.map((text) => text ?? "")
    )
  yield* ExportFolder.refuseLinks(directory)
  const refused = (name: string) => (message: string) =>
    new ExportFolder.NoExport({ message: `The file ${name} of the export is not valid: ${message}` })
  const manifest = yield* Effect.fromResult(Manifest.parse(yield* read(exportFiles.manifest))).pipe(
    Effect.mapError(refused(exportFiles.manifest))
  )
  const note = yield* read(exportFiles.checkpoint)
  const opened = CheckpointAudit.openWith(crypto, verifiers)(note)
  const checkpoint = yield* Effect.fromResult(opened).pipe(Effect.mapError(refused(exportFiles.checkpoint)))
  const { from, size, to } = manifest
  const isRange = 0 <= from && from < to && to <= size && size === checkpoint.size
  if (!isRange) return yield* refused(exportFiles.manifest)(`its range does not fit a log of ${checkpoint.size} signed events`)
  return { checkpoint, manifest, signedBy: CheckpointAudit.signedBy(crypto, note, verifiers) }
})

/**
 * Creates the functions that compare the personal documents of the export with the events; null if the export has no folder with
 * personal documents.
 */
const makeDocuments = Effect.fnUntraced(function* (directory: string, findings: Findings.Findings) {
  const crypto = yield* Crypto
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (!(yield* fs.exists(path.join(directory, personalFolder)))) return null
  const { compare, counts } = DocumentAudit.make(crypto, findings)
  const lines = LineReader.byPosition(yield* LineReader.open(path.join(directory, exportFiles.documents)), (line) =>
    findings.add(null, `${exportFiles.documents} has an unexpected line: ${line.slice(0, 20)}`)
  )
  return {
    /** Compares the personal document of an event with the digest in the event, and returns the document. */
    take: Effect.fnUntraced(function* ({ data, event: { position } }: ExportLines.ReadLine) {
      const line = yield* lines.take(position)
      const text = line?.slice(`${position} `.length)
      const stored = text === erased ? null : text
      compare(position, data, stored)
      return stored
    }),
    finish: lines.finish,
    counts
  }
})

/** Creates the functions that compare each CSV table of the export with the rows that the exported events produce. */
const makeTables = Effect.fnUntraced(function* (
  directory: string,
  { log }: Manifest.ExportManifest,
  withPersonal: boolean,
  findings: Findings.Findings
) {
  const path = yield* Path.Path
  const catalogue = yield* ExportCatalogue
  const tables = yield* Effect.forEach(
    tablesOf(catalogue.tables, log).filter(({ file }) => withPersonal || !file.startsWith(`${personalFolder}/`)),
    Effect.fnUntraced(function* (table) {
      const next = yield* LineReader.open(path.join(directory, table.file), lineEnd)
      if ((yield* next) !== headerOf(table)) findings.add(null, `${table.file} does not begin with the names of its columns`)
      const stray = (line: string) => findings.add(null, `${table.file} has a row that matches no event: ${line.slice(0, 80)}`)
      return { table, rows: LineReader.byPosition(next, stray) }
    })
  )
  return {
    compare: Effect.fnUntraced(function* (read: ExportedEvent) {
      const { event } = read
      for (const { rows, table } of tables) {
        const expected = rowOf(table, read)
        if (expected === null) continue
        const row = yield* rows.take(event.position)
        if (row !== expected)
          findings.add(event.position, `${table.file} ${row === null ? "has no row" : "has a different row"} for this event`)
      }
    }),
    finish: Effect.forEach(tables, ({ rows }) => rows.finish, { discard: true })
  }
})

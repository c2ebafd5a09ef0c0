/**
 * Verifies the folder of an export with the log's public key alone: every line, leaf, table row, receipt and proof, and the
 * signed root.
 */
import { Effect, FileSystem, Option, Path, Result, Schema } from "effect"
import { ReceiptIssued } from "#domain/receipts/Receipt.ts"
import * as CheckpointAudit from "#events/audit/verify/CheckpointAudit.ts"
import type { AuditReport } from "#events/audit/verify/DatabaseAudit.ts"
import * as Manifest from "#events/audit/export/ExportManifest.ts"
import { exportFiles, readmeOf } from "#events/audit/export/ExportReadme.ts"
import {
  type ExportedEvent,
  exportTables,
  headerOf,
  type KeyFacts,
  keyIdOf,
  lineEnd,
  personalFolder,
  rowOf
} from "#events/audit/export/ExportTable.ts"
import * as DocumentAudit from "#events/audit/verify/DocumentAudit.ts"
import * as Findings from "#events/audit/verify/Findings.ts"
import * as LineReader from "#events/audit/export/LineReader.ts"
import * as LogCheck from "#events/audit/verify/LogCheck.ts"
import { exactText } from "#events/audit/verify/ExactText.ts"
import { edgesOf, erased } from "#events/audit/export/LogExport.ts"
import { doctype, doctypeFile, indexFile, mediaDescription, supplierOf } from "#events/audit/export/MediaDescription.ts"
import * as ProvedFiles from "#events/audit/export/ProvedFiles.ts"
import * as EventLine from "#events/store/EventLine.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"
import type { Hash } from "#events/merkle/MerkleTree.ts"
import type { Verifiers } from "#events/merkle/NoteKeys.ts"
import { Hex } from "effect/encoding"

/** The folder is not an export, or a file that describes the rest cannot be read. */
export class NoExport extends Schema.TaggedError<NoExport>()("NoExport", { message: Schema.String }) {}

/** `kept` are checkpoints of the log from other places. */
export interface ExportAuditOptions {
  readonly directory: string
  readonly kept: ReadonlyArray<CheckpointAudit.KeptCheckpoint>
  readonly verifiers: Verifiers
  readonly progress: (done: number, of: number) => Effect.Effect<void>
}

/** Events verified before the next ones are read. */
const sectionSize = 2_048

export const run = Effect.fn("ExportAudit.run")(function* ({ directory, kept: notes, progress, verifiers }: ExportAuditOptions) {
  const crypto = yield* Crypto
  const findings = Findings.make()
  const { checkpoint, manifest, signedBy } = yield* open(directory, verifiers)
  const around = Option.getOrNull(Manifest.surroundings(manifest))
  if (around === null)
    return yield* new NoExport({ message: `${exportFiles.manifest} does not have the hashes that its range requires` })
  const check = LogCheck.make(crypto, findings, around.before)
  const files = yield* ProvedFiles.make(directory, verifiers, findings)
  const keyOf = makeKeys(files)
  const compareTime = makeCompareTime(manifest, findings)
  const documents = yield* makeDocuments(directory, findings)
  const tables = yield* makeTables(directory, documents !== null, findings)
  const readSection = yield* makeSections(directory, manifest, findings)

  const kept = CheckpointAudit.openKept(notes, CheckpointAudit.openWith(crypto, verifiers), findings)
  const checkpoints = CheckpointAudit.ofPart(findings, kept, manifest)
  let from = manifest.from
  for (const to of checkpoints.sectionEnds(sectionSize)) {
    const { leaves, read } = yield* readSection(from, to)
    check.take({ from, to, events: read.map(({ event }) => event), leaves })
    for (const one of read) {
      const personal = documents === null ? undefined : yield* documents.take(one)
      yield* tables.compare({ ...one, personal, key: yield* keyOf(one) })
      compareTime(one.event)
      if (one.event.type === ReceiptIssued.type) yield* files.compareReceipt(one.event, one.line)
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
      findings.add(position, `an event of the period was left out: it was recorded at ${recordedAt}`)
  }
  files.finish()
  checkpoints.conclude(checkpoint, check, around.after)
  yield* compareTexts(directory, manifest, findings)
  yield* compareNames(directory, signedBy, findings)
  const events = manifest.to - manifest.from
  return {
    events,
    signed: events,
    checkpoints: 1,
    signedBy,
    documents: documents?.counts() ?? null,
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
  findings.add(event.position, `it was recorded at ${event.recorded_at}, outside of the period in ${exportFiles.manifest}`)
}

/** Reads the facts of the key that an event concerns from the files of the export. */
const makeKeys = (files: Effect.Success<ReturnType<typeof ProvedFiles.make>>) => {
  const factsByKey = new Map<string, KeyFacts | null>()
  return Effect.fnUntraced(function* (read: ReadLine) {
    const keyId = keyIdOf(read)
    if (keyId === null) return null
    const before = factsByKey.get(keyId)
    if (before !== undefined) return before
    const facts = yield* files.findKey(keyId, read.event.position)
    factsByKey.set(keyId, facts)
    return facts
  })
}

/** Rejects links, which could point outside the folder, and special files, which may never end. */
const refuseLinks = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const look = Effect.fnUntraced(function* (name: string) {
    const { type } = yield* fs.lstat(path.join(directory, name))
    if (type !== "File" && type !== "Directory")
      return yield* new NoExport({ message: `${name} is neither a file nor a folder (${type}): an export has nothing else` })
  })
  yield* Effect.forEach(yield* fs.readDirectory(directory, { recursive: true }), look, { concurrency: 16, discard: true })
})

/** Reads the export's manifest and the checkpoint that this key signed. */
const open = Effect.fnUntraced(function* (directory: string, verifiers: Verifiers) {
  const path = yield* Path.Path
  const crypto = yield* Crypto
  const read = (name: string) =>
    exactText(path.join(directory, name)).pipe(
      Effect.catchTag("PlatformError", () =>
        Effect.fail(new NoExport({ message: `${directory} has no ${name}: the export is incomplete` }))
      ),
      Effect.map((text) => text ?? "")
    )
  yield* refuseLinks(directory)
  const refused = (name: string) => (message: string) => new NoExport({ message: `${name} cannot be used: ${message}` })
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

/** An event and the line it was read from. */
interface ReadLine extends Omit<ExportedEvent, "personal" | "key"> {
  readonly line: string
}

/** Reads events and leaves of the next positions. A request for none reports the remaining lines. */
const makeSections = Effect.fnUntraced(function* (
  directory: string,
  manifest: Manifest.ExportManifest,
  findings: Findings.Findings
) {
  const path = yield* Path.Path
  const nextLine = yield* LineReader.open(path.join(directory, exportFiles.events))
  const leafLines = LineReader.byPosition(yield* LineReader.open(path.join(directory, exportFiles.leaves)), (line) =>
    findings.add(null, `${exportFiles.leaves} has a line that does not belong there: ${line.slice(0, 80)}`)
  )
  let ahead: ReadLine | null = null
  let expected = manifest.from

  /** Returns the next event in order. Lines that are no event, or out of order, are reported and skipped. */
  const nextEvent = Effect.gen(function* () {
    for (let line = yield* nextLine; line !== null; line = yield* nextLine) {
      const read = EventLine.parseWhole(line)
      if (Result.isFailure(read))
        findings.add(claimedPosition(line) ?? expected, `${exportFiles.events}: ${read.failure.message}`)
      else {
        const { data, event, personal } = read.success
        const { position } = event
        if (personal !== undefined) findings.add(position, `${exportFiles.events} has a personal document in it`)
        if (position >= expected && position < manifest.to) return { data, event, line }
        findings.add(position, `${exportFiles.events} has the event where it does not belong`)
      }
    }
    return null
  })

  const leafAt = (line: string | null, position: number): Hash => {
    const hex = /^\d+ ([\da-f]{64})$/u.exec(line ?? "")?.[1]
    const hash = hex === undefined ? null : Option.getOrNull(Result.getSuccess(Hex.decode(hex)))
    if (hash === null) findings.add(position, `${exportFiles.leaves} does not have its leaf`)
    return hash ?? new Uint8Array()
  }

  return Effect.fnUntraced(function* (from: number, to: number) {
    const read: Array<ReadLine> = []
    const leaves: Array<Hash> = []
    for (let position = from; position < to; position += 1) {
      leaves.push(leafAt(yield* leafLines.take(position), position))
      ahead ??= yield* nextEvent
      if (ahead?.event.position === position) {
        read.push(ahead)
        ahead = null
      }
      expected = position + 1
    }
    if (from === to) {
      yield* nextEvent
      yield* leafLines.finish
    }
    return { read, leaves }
  })
})

/** Returns the position that a malformed line claims. */
const claimedPosition = (line: string) => {
  const claimed = /,"position":(\d{1,15}),"recorded_at":/u.exec(line)?.[1]
  return claimed === undefined ? null : Number(claimed)
}

/** The personal documents; null if their folder is missing. */
const makeDocuments = Effect.fnUntraced(function* (directory: string, findings: Findings.Findings) {
  const crypto = yield* Crypto
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (!(yield* fs.exists(path.join(directory, personalFolder)))) return null
  const { compare, counts } = DocumentAudit.make(crypto, findings)
  const lines = LineReader.byPosition(yield* LineReader.open(path.join(directory, exportFiles.documents)), (line) =>
    findings.add(null, `${exportFiles.documents} has a line that does not belong there: ${line.slice(0, 20)}`)
  )
  return {
    /** Returns the document of an event after comparing it with its digest. */
    take: Effect.fnUntraced(function* ({ data, event: { position } }: ReadLine) {
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

/** Compares each table with the rows that the events produce. */
const makeTables = Effect.fnUntraced(function* (directory: string, withPersonal: boolean, findings: Findings.Findings) {
  const path = yield* Path.Path
  const tables = yield* Effect.forEach(
    exportTables.filter(({ file }) => withPersonal || !file.startsWith(`${personalFolder}/`)),
    Effect.fnUntraced(function* (table) {
      const next = yield* LineReader.open(path.join(directory, table.file), lineEnd)
      if ((yield* next) !== headerOf(table)) findings.add(null, `${table.file} does not begin with the names of its columns`)
      const stray = (line: string) => findings.add(null, `${table.file} has a row that no event produces: ${line.slice(0, 80)}`)
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
          findings.add(event.position, `${table.file} ${row === null ? "has no row" : "has a different row"} for it`)
      }
    }),
    finish: Effect.forEach(tables, ({ rows }) => rows.finish, { discard: true })
  }
})

/** Compares the files that the manifest alone determines. */
const compareTexts = Effect.fnUntraced(function* (
  directory: string,
  manifest: Manifest.ExportManifest,
  findings: Findings.Findings
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const expected = [
    [indexFile, mediaDescription(supplierOf(manifest))],
    [doctypeFile, doctype],
    [exportFiles.readme, readmeOf(manifest)],
    [exportFiles.manifest, Manifest.format(manifest)]
  ] as const
  for (const [name, text] of expected) {
    const file = path.join(directory, name)
    const actual = (yield* fs.exists(file)) ? yield* exactText(file) : undefined
    if (actual !== text) findings.add(null, actual === undefined ? `${name} is missing` : `${name} was changed`)
  }
})

const exportNames: ReadonlySet<string> = new Set([
  ...Object.values(exportFiles),
  ...exportTables.map(({ file }) => file),
  indexFile,
  doctypeFile,
  personalFolder
])
/** Files that operating systems put into folders. */
const ofSystems = /^(?:\..*|Thumbs\.db|desktop\.ini)$/u

/**
 * Reports unexpected files and a foreign key: a reader takes everything in the folder for part of the export, and the key in it
 * for the signing key.
 */
const compareNames = Effect.fnUntraced(function* (
  directory: string,
  signedBy: ReadonlyArray<string>,
  findings: Findings.Findings
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const personal = path.join(directory, personalFolder)
  const inPersonal = (yield* fs.exists(personal)) ? yield* fs.readDirectory(personal) : []
  const names = [...(yield* fs.readDirectory(directory)), ...inPersonal.map((name) => `${personalFolder}/${name}`)]
  for (const name of names) {
    if (!exportNames.has(name) && !ofSystems.test(path.basename(name))) findings.add(null, `${name} is not a file of the export`)
  }
  const file = path.join(directory, exportFiles.verifier)
  if (!(yield* fs.exists(file))) return
  const keys = ((yield* exactText(file)) ?? "").split("\n")
  if (!keys.some((key) => signedBy.includes(key.trim())))
    findings.add(null, `${exportFiles.verifier} lacks the key that signed the checkpoint`)
})

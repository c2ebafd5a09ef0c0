/** Exports a range of the log to a folder: tables, all events as lines, personal documents, and proofs. */
import { DateTime, Effect, FileSystem, Option, Path, Result, Schema, Stream } from "effect"
import { Hex } from "effect/encoding"
import { SqlClient, SqlSchema } from "effect/sql"
import { LogExported, logStream } from "#domain/log/LogReadEvents.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as AuditReads from "#events/log/verify/AuditReads.ts"
import { textsOf } from "#events/log/export/ExportFolder.ts"
import { encodeHashes, type ExportManifest, otherNodes } from "#events/log/export/ExportManifest.ts"
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
import * as EventProofs from "#events/log/notary/EventProofs.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { leafHash } from "#events/log/merkle/MerkleTree.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/** Nothing was exported; the message says why. */
export class ExportRefused extends Schema.TaggedError<ExportRefused>()("ExportRefused", { message: Schema.String }) {}

/**
 * An export contains the signed events that were recorded from `from` (inclusive) to `to` (exclusive); null means unbounded. It
 * also contains the public keys in `verifierKeys`, if the array is not empty.
 */
export interface LogExportOptions {
  readonly directory: string
  readonly from: DateTime.Utc | null
  readonly to: DateTime.Utc | null
  readonly supplier: string
  readonly location: string
  readonly verifierKeys: ReadonlyArray<string>
  readonly progress: (done: number, of: number) => Effect.Effect<void>
}

const sectionSize = 2_048
const readAhead = 3
const proofsAtOnce = 4

export const run = Effect.fn("LogExport.run")(function* (options: LogExportOptions) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const proofs = yield* EventProofs.make
  const reads = yield* AuditReads.make
  const { proved } = yield* ExportCatalogue
  const into = (...names: ReadonlyArray<string>) => path.join(options.directory, ...names)

  const checkpoint = Option.getOrNull(yield* proofs.newest)
  if (checkpoint === null) {
    return yield* new ExportRefused({
      message: "The log was never signed, so an export would prove nothing: set NOTARY_KEY for the service"
    })
  }
  const manifest = yield* manifestOf(options, checkpoint)
  yield* prepareFolder(options.directory)
  const { appendFact } = yield* EventStore
  const { from, size, to } = manifest
  const period = { recorded_from: options.from, recorded_before: options.to }
  yield* appendFact(logStream, LogExported.make({ from, to, size, ...period }))
  yield* fs.makeDirectory(into(personalFolder), { mode: 0o700 })
  const write = yield* makeWriters(into, manifest)
  const prove = yield* makeProver(into, proofs, checkpoint)
  const factsOf = yield* makeFacts(prove, size)

  const readSection = (from: number, to: number) =>
    Effect.all([reads.events(from, to), reads.documents(from, to)], { concurrency: "unbounded" })

  const exportSection = Effect.fnUntraced(function* ([events, personal]: Effect.Success<ReturnType<typeof readSection>>) {
    const rows = yield* Effect.forEach(
      events,
      Effect.fnUntraced(function* (event) {
        const data = EventLine.readData(event)
        return {
          event,
          data,
          personal: personal.get(event.position)?.document,
          facts: yield* factsOf({ event, data })
        }
      })
    )
    yield* write(rows, personal)
    const single = events.filter(({ type }) => type === proved.type)
    const proveSingle = (event: StoredEvent) => prove(event, proved.folder, proved.nameOf(event), proved.nameOf(event))
    yield* Effect.forEach(single, proveSingle, { concurrency: proofsAtOnce, discard: true })
    const last = events.at(-1)
    if (last !== undefined) yield* options.progress(last.position + 1 - manifest.from, manifest.to - manifest.from)
  })

  const sections = Math.ceil((manifest.to - manifest.from) / sectionSize)
  const starts = Array.from({ length: sections }, (_, i) => manifest.from + i * sectionSize)
  yield* Stream.fromIterable(starts).pipe(
    Stream.mapEffect((from) => readSection(from, Math.min(from + sectionSize, manifest.to)), { concurrency: readAhead }),
    Stream.runForEach(exportSection)
  )
  for (const position of edgesOf(manifest)) {
    const [event] = yield* reads.events(position, position + 1)
    if (event !== undefined)
      yield* fs.writeFileString(
        into(exportFiles.proofs, `${edgeName(position)}.tlog-proof`),
        yield* proofs.prove(event, checkpoint)
      )
  }
  yield* fs.writeFileString(into(exportFiles.checkpoint), checkpoint.note)
  const keys = options.verifierKeys.map((key) => `${key}\n`).join("")
  if (keys !== "") yield* fs.writeFileString(into(exportFiles.verifier), keys)
  for (const [name, text] of yield* textsOf(manifest)) yield* fs.writeFileString(into(name), text)
  return manifest
}, Effect.scoped)

const manifestOf = Effect.fnUntraced(function* (options: LogExportOptions, checkpoint: EventProofs.OpenCheckpoint) {
  const tree = yield* TreeStore
  const { size } = checkpoint
  const positionAt = yield* makePositionAt
  const from = options.from === null ? 0 : Math.min(yield* positionAt(options.from), size)
  const to = options.to === null ? size : Math.min(yield* positionAt(options.to), size)
  if (to <= from)
    return yield* new ExportRefused({
      message: "The export would be empty, because no signed event was recorded in the requested period"
    })
  const { after, before } = otherNodes({ from, to, size })
  const readNodes = tree.readNodes(size)
  const hashesOf = (nodes: typeof after) =>
    (nodes.length === 0 ? Effect.succeed([]) : readNodes(nodes)).pipe(
      Effect.catchTag("IncompleteTile", ({ message }) => Effect.fail(new ExportRefused({ message })))
    )
  const manifest: ExportManifest = {
    format: "vatproof-export/1",
    log: checkpoint.origin,
    from,
    to,
    size,
    recorded_from: options.from === null ? null : DateTime.formatIso(options.from),
    recorded_before: options.to === null ? null : DateTime.formatIso(options.to),
    exported_at: DateTime.formatIso(yield* DateTime.now),
    supplier: options.supplier,
    location: options.location,
    before: encodeHashes(yield* hashesOf(before)),
    after: encodeHashes(yield* hashesOf(after))
  }
  return manifest
})

const makePositionAt = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findOne({
    Request: Schema.DateTimeUtcFromDate,
    Result: Schema.Struct({ position: Schema.BigInt }),
    execute: (moment) => sql`SELECT vatproof.position_at(${logId}::smallint, ${moment}) AS position`
  })
  return (moment: DateTime.Utc) =>
    find(moment).pipe(
      QueryPolicy.withRetry("5 seconds"),
      Effect.map(({ position }) => Number(position))
    )
})

/**
 * Creates the folder of the export, or accepts an existing empty folder. Only the owner can access a new folder, because exports
 * contain personal data.
 */
const prepareFolder = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(directory, { recursive: true, mode: 0o700 })
  if ((yield* fs.readDirectory(directory)).length === 0) return
  return yield* new ExportRefused({ message: `The folder ${directory} is not empty: export to a new or an empty folder` })
})

type Into = (...names: ReadonlyArray<string>) => string

/**
 * Creates the files for events, leaf hashes, personal documents and tables. Returns a function that adds exported events to these
 * files.
 */
const makeWriters = Effect.fnUntraced(function* (into: Into, { log }: ExportManifest) {
  const fs = yield* FileSystem.FileSystem
  const crypto = yield* Crypto
  const catalogue = yield* ExportCatalogue
  const create = (name: string) => fs.open(into(name), { flag: "w" })
  const lines = yield* create(exportFiles.events)
  const leaves = yield* create(exportFiles.leaves)
  const personal = yield* create(exportFiles.documents)
  const tables = yield* Effect.forEach(tablesOf(catalogue.tables, log), (table) =>
    Effect.map(create(table.file), (file) => ({ table, file }))
  )
  const utf8 = new TextEncoder()
  for (const { file, table } of tables) yield* file.writeAll(utf8.encode(headerOf(table) + lineEnd))

  const leafLine = (event: StoredEvent) =>
    Result.match(leafOf(crypto, event), {
      onFailure: () => `${event.position} -\n`,
      onSuccess: (leaf) => `${event.position} ${Hex.encode(leafHash(crypto.sha256, leaf))}\n`
    })

  return Effect.fnUntraced(function* (
    rows: ReadonlyArray<ExportedEvent>,
    documents: ReadonlyMap<number, AuditReads.DocumentRow>
  ) {
    const events = rows.map(({ event }) => event)
    yield* lines.writeAll(utf8.encode(events.map((event) => `${EventLine.format(event)}\n`).join("")))
    yield* personal.writeAll(
      utf8.encode([...documents].map(([position, { document }]) => `${position} ${document ?? erased}\n`).join(""))
    )
    yield* leaves.writeAll(utf8.encode(events.map(leafLine).join("")))
    for (const { file, table } of tables) {
      const text = rows.flatMap((row) => rowOf(table, row) ?? []).map((row) => row + lineEnd)
      if (text.length > 0) yield* file.writeAll(utf8.encode(text.join("")))
    }
  })
})

type Prover = Effect.Success<ReturnType<typeof makeProver>>

/** Creates a function that writes an event to one file, and the proof of this event to another file. */
const makeProver = Effect.fnUntraced(function* (
  into: Into,
  proofs: Effect.Success<typeof EventProofs.make>,
  checkpoint: EventProofs.OpenCheckpoint
) {
  const fs = yield* FileSystem.FileSystem
  const { proved, references } = yield* ExportCatalogue
  for (const folder of [proved.folder, references.folder, exportFiles.proofs]) yield* fs.makeDirectory(into(folder))
  return Effect.fnUntraced(function* (event: StoredEvent, folder: string, name: string, proofName: string) {
    const proof = yield* proofs.prove(event, checkpoint)
    yield* fs.writeFileString(into(folder, `${name}.json`), `${EventLine.format(event)}\n`)
    yield* fs.writeFileString(into(exportFiles.proofs, `${proofName}.tlog-proof`), proof)
  })
})

/**
 * Creates a function that returns the facts that an event refers to, as of the first `size` events of the log. For each id it also
 * exports the event with these facts, and the proof of this event.
 */
const makeFacts = Effect.fnUntraced(function* (prove: Prover, size: number) {
  const { references } = yield* ExportCatalogue
  const find = yield* references.makeFind
  return yield* makeFactsOf(
    Effect.fnUntraced(function* (id) {
      const event = yield* find(id, size)
      if (event === null) return null
      yield* prove(event, references.folder, id, referenceName(references, id))
      return references.factsOf(id, event.type, EventLine.readData(event))
    })
  )
})

/** File name of the proof of an event that others refer to, without extension. */
export const referenceName = ({ noun }: { readonly noun: string }, id: string) => `${noun}-${id}`
/** File name of the proof of the event just before or after the exported positions, without extension. */
export const edgeName = (position: number) => `edge-${position}`

/**
 * Returns the positions just before and just after the exported positions, if the log has them. The times of the events at these
 * two positions prove that the export omits no event of its period.
 */
export const edgesOf = ({ from, size, to }: ExportManifest): ReadonlyArray<number> => [
  ...(from > 0 ? [from - 1] : []),
  ...(to < size ? [to] : [])
]

/** The text in `documents.txt` in place of an erased document. No document has this text. */
export const erased = "erased"

/**
 * An export has one file with a single event for each proved event, and for each event that its CSV tables refer to. Verifies these files and
 * the proofs of their events, and the proofs of the events just before and just after the exported positions.
 * Reports missing, wrong and surplus files.
 */
import { Effect, FileSystem, Option, Path, Result } from "effect"
import * as CheckpointAudit from "#events/log/verify/CheckpointAudit.ts"
import { exactText } from "#events/log/verify/ExactText.ts"
import { exportFiles } from "#events/log/export/ExportReadme.ts"
import { ExportCatalogue } from "#events/log/export/ExportTable.ts"
import type { Findings } from "#events/log/verify/Findings.ts"
import { edgeName, referenceName } from "#events/log/export/LogExport.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { Crypto, type PureCrypto } from "#domain/kernel/Crypto.ts"
import { leafHash } from "#events/log/merkle/MerkleTree.ts"
import type { Verifiers } from "#events/log/merkle/NoteKeys.ts"
import { carriesNoOther, parse } from "#events/log/merkle/Proof.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import { verifyInclusion } from "#events/log/merkle/TreeProofs.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * Creates a function that verifies the proof of an event, and returns the position that the proof states. If consecutive proofs
 * have the same checkpoint, the function verifies the checkpoint's signature only once.
 */
const makeProve = (crypto: PureCrypto, verifiers: Verifiers) => {
  const open = CheckpointAudit.openWith(crypto, verifiers)
  let last = { note: "", opened: open("") }
  return (text: string, leaf: string): Result.Result<number, string> =>
    Result.gen(function* () {
      const proof = yield* Result.mapError(parse(text), ({ message }) => message)
      const { checkpoint: note, hashes, index } = proof
      if (note !== last.note) last = { note, opened: open(note) }
      const { root, size } = yield* last.opened
      const claim = { index, size, root, proof: hashes, leafHash: leafHash(crypto.sha256, leaf) }
      if (!verifyInclusion(crypto.sha256, claim))
        return yield* Result.fail(`the exported event differs from the signed event at position ${index}`)
      if (!carriesNoOther(proof, leaf)) return yield* Result.fail('the line "extra" of the proof has the leaf of another event')
      return index
    })
}

/** Returns the leaf in the line `extra` of a proof. A leaf states the time at which its event was recorded. */
const carriedLeaf = (proof: string) =>
  Option.map(
    Option.flatMap(Result.getSuccess(parse(proof)), ({ extra }) => extra),
    (bytes) => new TextDecoder().decode(bytes)
  )

/**
 * Lists the files of proved events, facts and proofs in an export. `unseen` contains the files that no event has referred to so far.
 */
const makeFolders = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { proved, references } = yield* ExportCatalogue
  const folders = { single: proved.folder, facts: references.folder, proofs: exportFiles.proofs }
  const namesIn = (folder: string) => {
    const folderPath = path.join(directory, folder)
    return Effect.map(
      Effect.flatMap(fs.exists(folderPath), (there) =>
        there ? fs.readDirectory(folderPath) : Effect.succeed<ReadonlyArray<string>>([])
      ),
      (names) => new Set(names)
    )
  }
  const unseen = {
    single: yield* namesIn(folders.single),
    facts: yield* namesIn(folders.facts),
    proofs: yield* namesIn(folders.proofs)
  }
  const textOf = (folder: keyof typeof unseen, name: string) =>
    Effect.map(exactText(path.join(directory, folders[folder], name)), (text) => text ?? "")

  return { folders, unseen, textOf }
})

type Folders = Effect.Success<ReturnType<typeof makeFolders>>

/** Compares the proof in a file with the event that it should prove. */
const makeCompareProof = (
  crypto: PureCrypto,
  prove: ReturnType<typeof makeProve>,
  { textOf, unseen }: Folders,
  findings: Findings
) =>
  Effect.fnUntraced(function* (event: StoredEvent, subject: string, name: string) {
    const { position } = event
    if (!unseen.proofs.delete(`${name}.tlog-proof`)) return findings.add(position, `${subject} has no proof`)
    const leaf = leafOf(crypto, event)
    if (Result.isFailure(leaf)) return
    const proved = prove(yield* textOf("proofs", `${name}.tlog-proof`), leaf.success)
    if (Result.isFailure(proved)) findings.add(position, `the proof of ${subject} is invalid: ${proved.failure}`)
    else if (proved.success !== position) findings.add(position, `the proof of ${subject} belongs to position ${proved.success}`)
  })

export const make = Effect.fnUntraced(function* (directory: string, verifiers: Verifiers, findings: Findings) {
  const crypto = yield* Crypto
  const prove = makeProve(crypto, verifiers)
  const folders = yield* makeFolders(directory)
  const { textOf, unseen } = folders
  const { proved, references } = yield* ExportCatalogue
  const compareProof = makeCompareProof(crypto, prove, folders, findings)

  /** Returns the event in the file of an id; null if this event does not have the facts of the id. */
  const readFacts = Effect.fnUntraced(function* (id: string) {
    const line = (yield* textOf("facts", `${id}.json`)).replace(/\n$/u, "")
    const read = Option.getOrNull(Result.getSuccess(EventLine.parseWhole(line)))
    const facts = read === null ? null : references.factsOf(id, read.event.type, read.data)
    return read !== null && facts !== null ? { event: read.event, facts } : null
  })

  return {
    /** Compares the file of a proved event with the event's line in the export, and verifies the proof of the event. */
    compareSingle: Effect.fnUntraced(function* (event: StoredEvent, line: string) {
      const name = proved.nameOf(event)
      const subject = `the ${proved.noun} ${name}`
      const { position } = event
      if (!unseen.single.delete(`${name}.json`)) findings.add(position, `${subject} has no file`)
      else if ((yield* textOf("single", `${name}.json`)) !== `${line}\n`)
        findings.add(position, `the file of ${subject} differs from the ${proved.noun}'s event`)
      yield* compareProof(event, subject, name)
    }),
    /** Returns the facts of an id from their file. If the file is missing or wrong, adds a finding at `position` and returns null. */
    findFacts: Effect.fnUntraced(function* (id: string, position: number) {
      const subject = `the ${references.noun} ${id}`
      if (!unseen.facts.delete(`${id}.json`)) {
        findings.add(position, `${subject} has no file`)
        return null
      }
      const read = yield* readFacts(id)
      if (read === null) {
        findings.add(position, `the file of ${subject} is not the event that issued it`)
        return null
      }
      yield* compareProof(read.event, subject, referenceName(references, id))
      return read.facts
    }),
    /**
     * Returns the recording time of the event just before or just after the exported positions, as its proof states it. If the
     * proof is invalid, adds a finding and returns null.
     */
    recordedAt: Effect.fnUntraced(function* (position: number) {
      const name = `${edgeName(position)}.tlog-proof`
      const text = unseen.proofs.delete(name) ? yield* textOf("proofs", name) : ""
      const leaf = Option.getOrElse(carriedLeaf(text), () => "")
      const at = /,"position":(\d+),"recorded_at":"([\d:.TZ-]+)",/u.exec(leaf)
      if (Result.getOrElse(prove(text, leaf), () => -1) === position && Number(at?.[1]) === position) return at?.[2] ?? null
      findings.add(position, `${exportFiles.proofs}/${name} does not prove when the event at this position was recorded`)
      return null
    }),
    /** Reports each of these files that no event of the export refers to. */
    finish: () => {
      for (const folder of ["single", "facts", "proofs"] as const)
        for (const name of unseen[folder])
          findings.add(null, `${folders.folders[folder]}/${name} belongs to no event of the export`)
    }
  }
})

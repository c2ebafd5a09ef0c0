/**
 * Verifies the files of an export that have one event each, and the proofs of these events: the events of the receipts, and the events
 * that issued the API keys in the tables. Reports missing, wrong and surplus files. Also verifies the proofs of the events just before
 * and after the exported positions.
 */
import { Effect, FileSystem, Option, Path, Result } from "effect"
import * as CheckpointAudit from "#events/audit/verify/CheckpointAudit.ts"
import { exactText } from "#events/audit/verify/ExactText.ts"
import { exportFiles } from "#events/audit/export/ExportReadme.ts"
import { keyFactsOf } from "#events/audit/export/ExportTable.ts"
import type { Findings } from "#events/audit/verify/Findings.ts"
import { edgeName, keyName, receiptName } from "#events/audit/export/LogExport.ts"
import * as EventLine from "#events/store/EventLine.ts"
import { Crypto, type PureCrypto } from "#domain/kernel/Crypto.ts"
import { leafHash } from "#events/merkle/MerkleTree.ts"
import type { Verifiers } from "#events/merkle/NoteKeys.ts"
import { carriesNoOther, parse } from "#events/merkle/Proof.ts"
import { leafOf } from "#events/notary/StoredLeaf.ts"
import { verifyInclusion } from "#events/merkle/TreeProofs.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"

/** Creates a function that verifies a proof and returns the proved position. Verifies the checkpoint of consecutive proofs only once. */
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
        return yield* Result.fail(`the event differs from the event at position ${index}`)
      if (!carriesNoOther(proof, leaf)) return yield* Result.fail("the proof has the leaf of another event")
      return index
    })
}

/** Returns the leaf that a proof carries. The leaf states when its event was recorded. */
const carriedLeaf = (proof: string) =>
  Option.map(
    Option.flatMap(Result.getSuccess(parse(proof)), ({ extra }) => extra),
    (bytes) => new TextDecoder().decode(bytes)
  )

/** Lists the files of receipts, keys and proofs. `unseen` has the files that no event has referred to yet. */
const makeFolders = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
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
    receipts: yield* namesIn(exportFiles.receipts),
    keys: yield* namesIn(exportFiles.keys),
    proofs: yield* namesIn(exportFiles.proofs)
  }
  const textOf = (folder: keyof typeof unseen, name: string) =>
    Effect.map(exactText(path.join(directory, exportFiles[folder], name)), (text) => text ?? "")

  return { unseen, textOf }
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
  const compareProof = makeCompareProof(crypto, prove, folders, findings)

  /** Returns the event in a key's file; null if the event did not issue this key. */
  const readKey = Effect.fnUntraced(function* (keyId: string) {
    const line = (yield* textOf("keys", `${keyId}.json`)).replace(/\n$/u, "")
    const read = Option.getOrNull(Result.getSuccess(EventLine.parseWhole(line)))
    const facts = read === null ? null : keyFactsOf(read.event.type, read.data)
    return read !== null && facts?.keyId === keyId ? { event: read.event, facts } : null
  })

  return {
    /** Compares the files of a receipt with the line of its event. */
    compareReceipt: Effect.fnUntraced(function* (event: StoredEvent, line: string) {
      const name = receiptName(event)
      const { position } = event
      if (!unseen.receipts.delete(`${name}.json`)) findings.add(position, `the receipt ${name} has no file`)
      else if ((yield* textOf("receipts", `${name}.json`)) !== `${line}\n`)
        findings.add(position, `the file of the receipt ${name} differs from the receipt's event`)
      yield* compareProof(event, `the receipt ${name}`, name)
    }),
    /** Returns the facts of a key from its file. If the file is missing or wrong, reports it at `position` and returns null. */
    findKey: Effect.fnUntraced(function* (keyId: string, position: number) {
      if (!unseen.keys.delete(`${keyId}.json`)) {
        findings.add(position, `the key ${keyId} has no file`)
        return null
      }
      const key = yield* readKey(keyId)
      if (key === null) {
        findings.add(position, `the file of the key ${keyId} is not the event that issued it`)
        return null
      }
      yield* compareProof(key.event, `the key ${keyId}`, keyName(keyId))
      return key.facts
    }),
    /** Returns when the event just before or after the exported positions was recorded; null, and a finding, if its proof is invalid. */
    recordedAt: Effect.fnUntraced(function* (position: number) {
      const name = `${edgeName(position)}.tlog-proof`
      const text = unseen.proofs.delete(name) ? yield* textOf("proofs", name) : ""
      const leaf = Option.getOrElse(carriedLeaf(text), () => "")
      const at = /,"position":(\d+),"recorded_at":"([\d:.TZ-]+)",/u.exec(leaf)
      if (Result.getOrElse(prove(text, leaf), () => -1) === position && Number(at?.[1]) === position) return at?.[2] ?? null
      findings.add(position, `${exportFiles.proofs}/${name} does not prove when the event at this position was recorded`)
      return null
    }),
    /** Reports the files that no event refers to. */
    finish: () => {
      for (const folder of ["receipts", "keys", "proofs"] as const)
        for (const name of unseen[folder]) findings.add(null, `${exportFiles[folder]}/${name} belongs to no event of the export`)
    }
  }
})

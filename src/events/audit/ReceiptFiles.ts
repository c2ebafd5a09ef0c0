/** The receipts of an export, each in a file of its own with its proof beside it: that they are all there, right, and no more. */
import { Effect, FileSystem, Path, Result } from "effect"
import * as CheckpointAudit from "#events/audit/CheckpointAudit.ts"
import { exportFiles } from "#events/audit/ExportReadme.ts"
import type { Findings } from "#events/audit/Findings.ts"
import { receiptName } from "#events/audit/LogExport.ts"
import { LogCrypto } from "#events/log/LogCrypto.ts"
import { leafHash } from "#events/log/MerkleTree.ts"
import type { Verifiers } from "#events/log/NoteKeys.ts"
import { carriesNoOther, parse } from "#events/log/Proof.ts"
import { leafOf } from "#events/log/StoredLeaf.ts"
import { verifyInclusion } from "#events/log/TreeProofs.ts"
import type { StoredEvent } from "#events/StoredEvent.ts"

/** Verifies proofs. Those of an export share one checkpoint, whose signature need not be verified for each of them. */
const makeProve = (crypto: LogCrypto["Service"], verifiers: Verifiers) => {
  const open = CheckpointAudit.openWith(crypto, verifiers)
  let last = { note: "", opened: open("") }
  return (text: string, leaf: string): Result.Result<number, string> =>
    Result.gen(function* () {
      const proof = yield* Result.mapError(parse(text), ({ message }) => message)
      const { checkpoint: note, hashes, index } = proof
      if (note !== last.note) last = { note, opened: open(note) }
      const { root, size } = yield* last.opened
      const claim = { index, size, root, proof: hashes, leafHash: leafHash(crypto.sha256, leaf) }
      if (!verifyInclusion(crypto.sha256, claim)) return yield* Result.fail(`its event is not the one at position ${index}`)
      if (!carriesNoOther(proof, leaf)) return yield* Result.fail("it carries another leaf than that of its event")
      return index
    })
}

export const make = Effect.fnUntraced(function* (directory: string, verifiers: Verifiers, findings: Findings) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const crypto = yield* LogCrypto
  const prove = makeProve(crypto, verifiers)
  const receipts = path.join(directory, exportFiles.receipts)
  const proofs = path.join(directory, exportFiles.proofs)
  const namesIn = (folder: string) =>
    Effect.flatMap(fs.exists(folder), (there) => (there ? fs.readDirectory(folder) : Effect.succeed<ReadonlyArray<string>>([])))
  const unseenReceipts = new Set(yield* namesIn(receipts))
  const unseenProofs = new Set(yield* namesIn(proofs))

  return {
    /** Compares the files of a receipt with its event, whose line is given. */
    compare: Effect.fnUntraced(function* (event: StoredEvent, line: string) {
      const name = receiptName(event)
      const { position } = event
      if (!unseenReceipts.delete(`${name}.json`)) findings.add(position, `the receipt ${name} has no file`)
      else if ((yield* fs.readFileString(path.join(receipts, `${name}.json`))) !== `${line}\n`) {
        findings.add(position, `the file of the receipt ${name} is not its event`)
      }
      if (!unseenProofs.delete(`${name}.tlog-proof`)) return findings.add(position, `the receipt ${name} has no proof`)
      const leaf = leafOf(crypto, event)
      if (Result.isFailure(leaf)) return
      const text = yield* fs.readFileString(path.join(proofs, `${name}.tlog-proof`))
      const proved = prove(text, leaf.success)
      if (Result.isFailure(proved)) findings.add(position, `the proof of the receipt ${name} does not hold: ${proved.failure}`)
      else if (proved.success !== position)
        findings.add(position, `the proof of the receipt ${name} is that of position ${proved.success}`)
    }),
    /** What nobody asked for is in no event. */
    finish: () => {
      for (const name of unseenReceipts) findings.add(null, `${exportFiles.receipts}/${name} is in no event of the export`)
      for (const name of unseenProofs) findings.add(null, `${exportFiles.proofs}/${name} is in no event of the export`)
    }
  }
})

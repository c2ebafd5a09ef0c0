/**
 * An export has one file with a single event for each proved event, and for each event that its CSV tables refer to. Verifies these files and
 * the proofs of their events, and the proofs of the events just before and just after the exported positions.
 * Reports missing, wrong and surplus files.
 */
import { Effect, FileSystem, Option, Path, Result } from "effect"
import { exactText } from "#events/log/verify/ExactText.ts"
import { exportFiles } from "#events/log/export/ExportReadme.ts"
import { ExportCatalogue } from "#events/log/export/ExportTable.ts"
import type { Findings } from "#events/log/verify/Findings.ts"
import { edgeName, referenceName } from "#events/log/export/LogExport.ts"
import * as ReceiptAudit from "#events/log/verify/ReceiptAudit.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { Verifiers } from "#events/log/merkle/NoteKeys.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * Opens a folder of the export, which may be missing. `take` returns the text of a file; null if the folder has no such file, or if the
 * file was taken before. `finish` reports the files that were not taken.
 */
const openFolder = Effect.fnUntraced(function* (directory: string, folder: string, findings: Findings) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const place = path.join(directory, folder)
  const names = new Set((yield* fs.exists(place)) ? yield* fs.readDirectory(place) : [])
  return {
    take: Effect.fnUntraced(function* (name: string) {
      return names.delete(name) ? ((yield* exactText(path.join(place, name))) ?? "") : null
    }),
    finish: () => {
      for (const name of names) findings.add(null, `${folder}/${name} belongs to no event of the export`)
    }
  }
})

export const make = Effect.fnUntraced(function* (directory: string, verifiers: Verifiers, findings: Findings) {
  const crypto = yield* Crypto
  const { proved, references } = yield* ExportCatalogue
  const single = yield* openFolder(directory, proved.folder, findings)
  const facts = yield* openFolder(directory, references.folder, findings)
  const proofs = yield* openFolder(directory, exportFiles.proofs, findings)

  /** Compares the proof with this name with the event that it should prove. */
  const compareProof = Effect.fnUntraced(function* (event: string, position: number, subject: string, name: string) {
    const proof = yield* proofs.take(`${name}.tlog-proof`)
    if (proof === null) return findings.add(position, `${subject} has no proof`)
    const result = ReceiptAudit.run(crypto, { proof, event, verifiers })
    if (Result.isFailure(result)) findings.add(position, `the proof of ${subject} is invalid: ${result.failure.message}`)
    else if (result.success.index !== position)
      findings.add(position, `the proof of ${subject} belongs to position ${result.success.index}`)
  })

  return {
    /** Compares the file of a proved event with the event's line in the export, and verifies the proof of the event. */
    compareSingle: Effect.fnUntraced(function* (event: StoredEvent, line: string) {
      const name = proved.nameOf(event)
      const subject = `the ${proved.noun} ${name}`
      const { position } = event
      const text = yield* single.take(`${name}.json`)
      if (text === null) findings.add(position, `${subject} has no file`)
      else if (text !== `${line}\n`) findings.add(position, `the file of ${subject} differs from the ${proved.noun}'s event`)
      yield* compareProof(line, position, subject, name)
    }),
    /** Returns the facts of an id from their file. If the file is missing or wrong, adds a finding at `position` and returns null. */
    findFacts: Effect.fnUntraced(function* (id: string, position: number) {
      const subject = `the ${references.noun} ${id}`
      const text = yield* facts.take(`${id}.json`)
      if (text === null) {
        findings.add(position, `${subject} has no file`)
        return null
      }
      const line = text.replace(/\n$/u, "")
      const read = Option.getOrNull(Result.getSuccess(EventLine.parseWhole(line)))
      const found = read === null ? null : references.factsOf(id, read.event.type, read.data)
      if (read === null || found === null) {
        findings.add(position, `the file of ${subject} is not the event that issued it`)
        return null
      }
      yield* compareProof(line, read.event.position, subject, referenceName(references, id))
      return found
    }),
    /**
     * Returns the recording time of the event just before or just after the exported positions, as its proof states it. If the
     * proof is invalid, adds a finding and returns null.
     */
    recordedAt: Effect.fnUntraced(function* (position: number) {
      const name = `${edgeName(position)}.tlog-proof`
      const proof = (yield* proofs.take(name)) ?? ""
      const proven = Option.getOrNull(Result.getSuccess(ReceiptAudit.run(crypto, { proof, event: null, verifiers })))
      const at = /,"position":(\d+),"recorded_at":"([\d:.TZ-]+)",/u.exec(proven?.leaf ?? "")
      if (proven?.index === position && Number(at?.[1]) === position) return at?.[2] ?? null
      findings.add(position, `${exportFiles.proofs}/${name} does not prove when the event at this position was recorded`)
      return null
    }),
    /** Reports each of these files that no event of the export refers to. */
    finish: () => [single, facts, proofs].forEach(({ finish }) => finish())
  }
})

/** Reads the events and leaf hashes of an export in the order of their positions. */
import { Effect, Option, Path, Result } from "effect"
import { Hex } from "effect/encoding"
import type { ExportManifest } from "#events/log/export/ExportManifest.ts"
import { exportFiles } from "#events/log/export/ExportReadme.ts"
import type { ExportedEvent } from "#events/log/export/ExportTable.ts"
import * as LineReader from "#events/log/export/LineReader.ts"
import type * as Findings from "#events/log/verify/Findings.ts"
import type { Hash } from "#events/log/merkle/MerkleTree.ts"
import * as EventLine from "#events/log/store/EventLine.ts"

/** An event, and the line of the export that it was read from. */
export interface ReadLine extends Omit<ExportedEvent, "personal" | "facts"> {
  readonly line: string
}

/**
 * Creates a function that reads the events and leaf hashes of the positions `from` (inclusive) to `to` (exclusive). The caller
 * reads all ranges in ascending order. A last call with `from` = `to` reports the lines that remain in the files.
 */
export const make = Effect.fnUntraced(function* (directory: string, manifest: ExportManifest, findings: Findings.Findings) {
  const path = yield* Path.Path
  const nextLine = yield* LineReader.open(path.join(directory, exportFiles.events))
  const leafLines = LineReader.byPosition(yield* LineReader.open(path.join(directory, exportFiles.leaves)), (line) =>
    findings.add(null, `${exportFiles.leaves} has an unexpected line: ${line.slice(0, 80)}`)
  )
  let ahead: ReadLine | null = null
  let expected = manifest.from

  /** Returns the next event. Reports and skips lines that are not an event or that are out of order. */
  const nextEvent = Effect.gen(function* () {
    for (let line = yield* nextLine; line !== null; line = yield* nextLine) {
      const read = EventLine.parseWhole(line)
      if (Result.isFailure(read))
        findings.add(claimedPosition(line) ?? expected, `${exportFiles.events}: ${read.failure.message}`)
      else {
        const { data, event, personal } = read.success
        const { position } = event
        if (personal !== undefined) findings.add(position, `${exportFiles.events} contains a personal document`)
        if (position >= expected && position < manifest.to) return { data, event, line }
        findings.add(position, `${exportFiles.events} has this event out of order`)
      }
    }
    return null
  })

  const leafAt = (line: string | null, position: number): Hash => {
    const hex = /^\d+ ([\da-f]{64})$/u.exec(line ?? "")?.[1]
    const hash = hex === undefined ? null : Option.getOrNull(Result.getSuccess(Hex.decode(hex)))
    if (hash === null) findings.add(position, `${exportFiles.leaves} does not have the leaf of this event`)
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

/** Returns the position that a malformed line states; null if the line states no position. */
const claimedPosition = (line: string) => {
  const claimed = /,"position":(\d{1,15}),"recorded_at":/u.exec(line)?.[1]
  return claimed === undefined ? null : Number(claimed)
}

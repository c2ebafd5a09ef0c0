/** Holds signed checkpoints against the roots that a log has at their sizes. */
import { Result } from "effect"
import type { Findings } from "#events/audit/verify/Findings.ts"
import type { LogCheck, LogRoots } from "#events/audit/verify/LogCheck.ts"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { equalHashes, type Node } from "#events/merkle/MerkleTree.ts"
import { formatVerifier, type Verifiers } from "#events/merkle/NoteKeys.ts"

/** Opens a checkpoint that one of these keys signed in their name. */
export const openWith =
  (crypto: PureCrypto, verifiers: Verifiers) =>
  (note: string): Result.Result<Checkpoint.Checkpoint, string> =>
    Result.mapError(Checkpoint.open(crypto, note, { origin: verifiers[0].name, verifiers }), ({ message }) => message)

/** Those of these keys that a checkpoint is signed with, as text. */
export const signedBy = (crypto: PureCrypto, note: string, verifiers: Verifiers): ReadonlyArray<string> =>
  Checkpoint.signersOf(crypto, note, verifiers).map(formatVerifier)

/** A checkpoint that somebody kept, and where. */
export interface KeptCheckpoint {
  readonly note: string
  readonly at: string
}

/** A checkpoint to compare with; null stands for one of the log's own, which may have been signed over a log that was altered already. */
export interface OpenedCheckpoint extends Checkpoint.Checkpoint {
  readonly keptAt: string | null
}

/** Opens checkpoints that were kept; one that no key of the log has signed is a finding, and says nothing else. */
export const openKept = (
  given: ReadonlyArray<KeptCheckpoint>,
  open: ReturnType<typeof openWith>,
  findings: Findings
): ReadonlyArray<OpenedCheckpoint> =>
  given.flatMap(({ at, note }) => {
    const opened = open(note)
    if (Result.isSuccess(opened)) return [{ ...opened.success, keptAt: at }]
    findings.add(null, `the checkpoint in ${at} is not valid: ${opened.failure}`)
    return []
  })

export interface CheckpointAudit {
  /** Compares with a log of exactly that many events. */
  readonly compare: (checkpoint: OpenedCheckpoint, roots: LogRoots) => void
  /** Says what the last comparison means for the positions whose event and leaf differ. */
  readonly conclude: (check: LogCheck) => { readonly leavesAreSigned: boolean }
}

export const make = (findings: Findings): CheckpointAudit => {
  let good = 0
  let goodKept = 0
  let bad = 0
  let badKept = 0
  let last = { leaves: true, events: true }

  /**
   * Where the change lies that a checkpoint of `size` events shows. One that was kept may contradict what the database has: then checkpoints in
   * the database that fit may have been signed after the change, and say nothing for certain.
   */
  const range = (size: number, isKept: boolean) => {
    const certain = isKept ? goodKept : good
    const between = (from: number) => (from === 0 ? `among its first ${size} events` : `from position ${from} to ${size - 1}`)
    const narrower =
      certain === good ? "" : `; ${between(good)}, if the database's own checkpoint of ${good} events is from before the change`
    return `something was changed ${between(certain)}${narrower}`
  }

  return {
    compare: ({ keptAt, root, size }, { ofEvents, ofLeaves }) => {
      last = { leaves: equalHashes(ofLeaves, root), events: equalHashes(ofEvents, root) }
      if (last.leaves || last.events) {
        good = size
        if (keptAt !== null) goodKept = size
        return
      }
      bad += 1
      if (keptAt !== null) badKept += 1
      // One changed event makes every later checkpoint fail as well: the first one says most, and the first one that was kept.
      if (bad === 1 || (keptAt !== null && badKept === 1)) {
        const what = keptAt === null ? "" : ` (${keptAt})`
        findings.add(
          size - 1,
          `the log is not the one that was signed with ${size} events${what}: ${range(size, keptAt !== null)}`
        )
      }
    },
    conclude: (check) => {
      if (bad > 1) findings.add(null, `${bad} signed checkpoints in all do not fit the log`)
      const meaning = last.leaves
        ? "the event is not the one that was signed"
        : last.events
          ? "the stored tree does not have the leaf that was signed (the event is right)"
          : "the event does not have the leaf in the stored tree, and the signature confirms neither"
      for (const position of check.different) findings.add(position, meaning)
      return { leavesAreSigned: last.leaves }
    }
  }
}

/** A part of a log, out of `size` signed events, that is looked at in sections. */
export interface LogPart {
  readonly from: number
  readonly to: number
  readonly size: number
}

/** Compares a part of a log with `kept` checkpoints: with those that end within it, or where the whole log did. */
export const ofPart = (findings: Findings, kept: ReadonlyArray<OpenedCheckpoint>, { from, size: whole, to }: LogPart) => {
  const audit = make(findings)
  const inside = kept.filter(({ size }) => size > from && size <= to)
  const sizes = new Set(inside.map(({ size }) => size))
  return {
    /** Where the checkpoints lie whose root the part does not tell. */
    uncompared: kept.filter(({ size }) => size !== whole && (size <= from || size > to)).map(({ keptAt }) => keptAt ?? ""),
    /** Where sections of up to `atMost` events end: each checkpoint ends one. */
    sectionEnds: function* (atMost: number): Generator<number> {
      let length = 0
      for (let end = from + 1; end <= to; end += 1) {
        length += 1
        if (end < to && length < atMost && !sizes.has(end)) continue
        yield end
        length = 0
      }
    },
    compareAt: (end: number, check: LogCheck) => {
      for (const checkpoint of inside) if (checkpoint.size === end) audit.compare(checkpoint, check.roots([]))
    },
    /** In the end: `after` are complete subtrees at the right of the part, up to the whole log. */
    conclude: (checkpoint: Checkpoint.Checkpoint, check: LogCheck, after: ReadonlyArray<Node>) => {
      const ofWhole = kept.filter(({ size }) => size === whole && size > to)
      for (const one of [...ofWhole, { ...checkpoint, keptAt: null }]) audit.compare(one, check.roots(after))
      audit.conclude(check)
    }
  }
}

/** Compares signed checkpoints with the roots of the log at their sizes. */
import { Result } from "effect"
import type { Findings } from "#events/audit/verify/Findings.ts"
import type { LogCheck, LogRoots } from "#events/audit/verify/LogCheck.ts"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { equalHashes, type Node } from "#events/merkle/MerkleTree.ts"
import { formatVerifier, type Verifiers } from "#events/merkle/NoteKeys.ts"
import type { StoredCheckpoint } from "#events/notary/TreeStore.ts"

/** Creates a function that parses a checkpoint. It fails unless one of the keys signed the checkpoint and its origin is the keys' name. */
export const openWith =
  (crypto: PureCrypto, verifiers: Verifiers) =>
  (note: string): Result.Result<Checkpoint.Checkpoint, string> =>
    Result.mapError(Checkpoint.open(crypto, note, { origin: verifiers[0].name, verifiers }), ({ message }) => message)

/** Returns the keys, as text, that signed a checkpoint. */
export const signedBy = (crypto: PureCrypto, note: string, verifiers: Verifiers): ReadonlyArray<string> =>
  Checkpoint.signersOf(crypto, note, verifiers).map(formatVerifier)

/** A checkpoint that is kept outside the database, in the file `at`. */
export interface KeptCheckpoint {
  readonly note: string
  readonly at: string
}

/** A checkpoint to compare the log with. `keptAt` is its file, or null for a checkpoint in the database, which an attacker may have replaced. */
export interface OpenedCheckpoint extends Checkpoint.Checkpoint {
  readonly keptAt: string | null
}

/** Parses kept checkpoints. Reports and skips a checkpoint that no key of the log signed. */
export const openKept = (
  checkpoints: ReadonlyArray<KeptCheckpoint>,
  open: ReturnType<typeof openWith>,
  findings: Findings
): ReadonlyArray<OpenedCheckpoint> =>
  checkpoints.flatMap(({ at, note }) => {
    const opened = open(note)
    if (Result.isSuccess(opened)) return [{ ...opened.success, keptAt: at }]
    findings.add(null, `the checkpoint in ${at} is not valid: ${opened.failure}`)
    return []
  })

/** Parses checkpoints of the database. Reports and skips a checkpoint that no key of the log signed, or that is stored for another size. */
export const openStored = (
  checkpoints: ReadonlyArray<StoredCheckpoint>,
  open: ReturnType<typeof openWith>,
  findings: Findings
): ReadonlyArray<OpenedCheckpoint> =>
  checkpoints.flatMap(({ note, size }) => {
    const opened = open(note)
    if (Result.isFailure(opened)) findings.add(size - 1, `the checkpoint of ${size} events is not valid: ${opened.failure}`)
    else if (opened.success.size !== size)
      findings.add(size - 1, `the checkpoint stored for ${size} events states ${opened.success.size} events`)
    else return [{ ...opened.success, keptAt: null }]
    return []
  })

export interface CheckpointAudit {
  /** Compares a checkpoint with the roots of the log at the size of that checkpoint. */
  readonly compare: (checkpoint: OpenedCheckpoint, roots: LogRoots) => void
  /** Reports each event whose leaf hash differs from the stored hash. The last comparison shows which of both hashes was signed. */
  readonly conclude: (check: LogCheck) => { readonly leavesAreSigned: boolean }
}

export const make = (findings: Findings): CheckpointAudit => {
  let good = 0
  let goodKept = 0
  let bad = 0
  let badKept = 0
  let last = { leaves: true, events: true }

  /**
   * Describes the range of positions in which the log was changed, after a mismatch with the checkpoint of `size` events. The range
   * begins after the last matching checkpoint. After a mismatch with a kept checkpoint, only kept checkpoints count, because a checkpoint
   * in the database may have been signed after the change. If it was signed before the change, the smaller range applies.
   */
  const range = (size: number, isKept: boolean) => {
    const certain = isKept ? goodKept : good
    const between = (from: number) => (from === 0 ? `among its first ${size} events` : `from position ${from} to ${size - 1}`)
    const narrower =
      certain === good
        ? ""
        : `, or ${between(good)} if the database's own checkpoint of ${good} events was signed before the change`
    return `the log was changed ${between(certain)}${narrower}`
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
      // After an altered event no checkpoint matches. Reports only the first mismatch, and the first mismatch with a kept checkpoint.
      if (bad === 1 || (keptAt !== null && badKept === 1)) {
        const location = keptAt === null ? "" : ` (${keptAt})`
        findings.add(
          size - 1,
          `the log contradicts the signed checkpoint of ${size} events${location}: ${range(size, keptAt !== null)}`
        )
      }
    },
    conclude: (check) => {
      if (bad > 1) findings.add(null, `${bad} signed checkpoints in total contradict the log`)
      const meaning = last.leaves
        ? "the event differs from the signed event"
        : last.events
          ? "the stored tree has a wrong hash for this event; the event itself is unchanged"
          : "the event and its hash in the stored tree differ, and neither matches the signature"
      for (const position of check.different) findings.add(position, meaning)
      return { leavesAreSigned: last.leaves }
    }
  }
}

/** The positions `from` (inclusive) to `to` (exclusive) of a log with `size` signed events. */
export interface LogPart {
  readonly from: number
  readonly to: number
  readonly size: number
}

/** Compares a part of a log with the `kept` checkpoints that end within the part or at the end of the whole log. */
export const ofPart = (findings: Findings, kept: ReadonlyArray<OpenedCheckpoint>, { from, size: whole, to }: LogPart) => {
  const audit = make(findings)
  const inside = kept.filter(({ size }) => size > from && size <= to)
  const sizes = new Set(inside.map(({ size }) => size))
  return {
    /** Files of the kept checkpoints whose root cannot be computed from this part. */
    uncompared: kept.filter(({ size }) => size !== whole && (size <= from || size > to)).map(({ keptAt }) => keptAt ?? ""),
    /** Splits the part into sections of up to `atMost` events and yields their ends. A section ends at each checkpoint. */
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
    /** Compares the checkpoints that cover the whole log, and reports each event that differs. `after` are the subtrees after the part. */
    conclude: (checkpoint: Checkpoint.Checkpoint, check: LogCheck, after: ReadonlyArray<Node>) => {
      const ofWhole = kept.filter(({ size }) => size === whole && size > to)
      for (const one of [...ofWhole, { ...checkpoint, keptAt: null }]) audit.compare(one, check.roots(after))
      audit.conclude(check)
    }
  }
}

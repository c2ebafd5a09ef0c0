/** Compares the signed checkpoints of a log with the Merkle roots that a verification computes from the log. */
import { Result } from "effect"
import type { Findings } from "#events/log/verify/Findings.ts"
import type { LogCheck, LogRoots } from "#events/log/verify/LogCheck.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { equalHashes, type Node } from "#events/log/merkle/MerkleTree.ts"
import { formatVerifier, type Verifiers } from "#events/log/merkle/NoteKeys.ts"
import type { StoredCheckpoint } from "#events/log/notary/TreeStore.ts"

/**
 * Creates a function that parses a checkpoint. The function fails unless one of `verifiers` signed the checkpoint, and the
 * checkpoint names the log of these keys.
 */
export const openWith =
  (crypto: PureCrypto, verifiers: Verifiers) =>
  (note: string): Result.Result<Checkpoint.Checkpoint, string> =>
    Result.mapError(Checkpoint.open(crypto, note, { origin: verifiers[0].name, verifiers }), ({ message }) => message)

/** Returns the public keys that signed a checkpoint, as text. */
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

/**
 * Parses checkpoints from the database. Reports and skips a checkpoint that no key of the log signed, and a checkpoint whose signed
 * size differs from the size in its row.
 */
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

export const make = (findings: Findings) => {
  let good = 0
  let goodKept = 0
  let bad = 0
  let badKept = 0
  let last = { leaves: true, events: true }

  /**
   * Describes where the log was changed, if it contradicts the checkpoint of `size` events: after the newest checkpoint that
   * matches. If the contradicted checkpoint was kept outside of the database, only kept checkpoints are reliable evidence, because
   * a checkpoint in the database could have been signed after the change. The text then also names the smaller range that follows
   * from the checkpoints in the database.
   */
  const range = (size: number, isKept: boolean) => {
    const lastMatch = isKept ? goodKept : good
    const rangeAfter = (from: number) => (from === 0 ? `among its first ${size} events` : `from position ${from} to ${size - 1}`)
    const orSmallerRange =
      lastMatch === good
        ? ""
        : `, or ${rangeAfter(good)} if the database's own checkpoint of ${good} events was signed before the change`
    return `the log was changed ${rangeAfter(lastMatch)}${orSmallerRange}`
  }

  return {
    /** Compares a checkpoint with the Merkle roots of the log after `size` events. */
    compare: ({ keptAt, root, size }: OpenedCheckpoint, { ofEvents, ofLeaves }: LogRoots) => {
      last = { leaves: equalHashes(ofLeaves, root), events: equalHashes(ofEvents, root) }
      if (last.leaves || last.events) {
        good = size
        if (keptAt !== null) goodKept = size
        return
      }
      bad += 1
      if (keptAt !== null) badKept += 1
      // If an event was altered, every later checkpoint contradicts the log. Therefore reports only the first contradiction, and
      // the first contradiction of a kept checkpoint.
      if (bad === 1 || (keptAt !== null && badKept === 1)) {
        const location = keptAt === null ? "" : ` (${keptAt})`
        findings.add(
          size - 1,
          `the log contradicts the signed checkpoint of ${size} events${location}: ${range(size, keptAt !== null)}`
        )
      }
    },
    /**
     * Reports each event whose leaf hash differs from the hash in the stored tree. The last call of `compare` has shown whether the
     * event or the stored hash was changed.
     */
    conclude: (check: LogCheck) => {
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

/**
 * Compares an exported part of a log with the checkpoints that the auditor kept (`kept`). It can compare a checkpoint whose last event is in the part, and
 * a checkpoint that covers the whole log.
 */
export const ofPart = (findings: Findings, kept: ReadonlyArray<OpenedCheckpoint>, { from, size: whole, to }: LogPart) => {
  const audit = make(findings)
  const inside = kept.filter(({ size }) => size > from && size <= to)
  const sizes = new Set(inside.map(({ size }) => size))
  return {
    /** Files of the kept checkpoints that cannot be compared, because this part of the log does not determine their root. */
    uncompared: kept.filter(({ size }) => size !== whole && (size <= from || size > to)).map(({ keptAt }) => keptAt ?? ""),
    /**
     * Splits the events between `from` and `to` into sections of up to `atMost` events, and yields the end of each section. A section
     * also ends at the size of each checkpoint that the auditor kept, so that the root at this size can be compared.
     */
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
    /**
     * Compares `checkpoint` and the kept checkpoints that cover the whole log. Then reports each event that differs from its stored
     * leaf hash. `after` are the subtrees over the positions after the part.
     */
    conclude: (checkpoint: Checkpoint.Checkpoint, check: LogCheck, after: ReadonlyArray<Node>) => {
      const ofWhole = kept.filter(({ size }) => size === whole && size > to)
      for (const one of [...ofWhole, { ...checkpoint, keptAt: null }]) audit.compare(one, check.roots(after))
      audit.conclude(check)
    }
  }
}

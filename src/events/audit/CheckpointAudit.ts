/** Holds signed checkpoints against the roots that a log has at their sizes. */
import { Option, Result } from "effect"
import type { Findings } from "#events/audit/Findings.ts"
import type { LogCheck, LogRoots } from "#events/audit/LogCheck.ts"
import * as Checkpoint from "#events/log/Checkpoint.ts"
import type { LogCrypto } from "#events/log/LogCrypto.ts"
import { equalHashes } from "#events/log/MerkleTree.ts"
import { formatVerifier, type Verifiers } from "#events/log/NoteKeys.ts"

/** Opens a checkpoint that one of these keys signed in their name. */
export const openWith =
  (crypto: LogCrypto["Service"], verifiers: Verifiers) =>
  (note: string): Result.Result<Checkpoint.Checkpoint, string> =>
    Result.mapError(Checkpoint.open(crypto, note, { origin: verifiers[0].name, verifiers }), ({ message }) => message)

/** Those of these keys that a checkpoint is signed with, as text. */
export const signedBy = (crypto: LogCrypto["Service"], note: string, verifiers: Verifiers): ReadonlyArray<string> =>
  Checkpoint.signersOf(crypto, note, verifiers).map(formatVerifier)

export interface CheckpointAudit {
  /** Compares with a log of exactly that many events. */
  readonly compare: (checkpoint: Checkpoint.Checkpoint, roots: LogRoots) => void
  /** Says what the last comparison means for the positions whose event and leaf differ. */
  readonly conclude: (check: LogCheck) => { readonly leavesAreSigned: boolean }
}

export const make = (findings: Findings): CheckpointAudit => {
  let good = 0
  let bad = 0
  let last = { leaves: true, events: true }

  return {
    compare: ({ root, size }, { ofEvents, ofLeaves }) => {
      last = { leaves: equalHashes(ofLeaves, root), events: equalHashes(ofEvents, root) }
      if (last.leaves || last.events) {
        good = size
        return
      }
      bad += 1
      // One changed event makes every later checkpoint fail as well: the first one says most.
      if (bad === 1) {
        const where = Option.match(
          Option.liftPredicate(good, (known) => known > 0),
          {
            onNone: () => `among its first ${size} events`,
            onSome: (known) => `from position ${known} to ${size - 1}`
          }
        )
        findings.add(size - 1, `the log is not the one that was signed with ${size} events: something was changed ${where}`)
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

/**
 * Decides whether a witness may cosign a checkpoint of another log: the log's key must have signed it, and the log must extend the last
 * checkpoint that the witness cosigned (c2sp.org/tlog-witness, read 2026-11-23). A log therefore cannot show the witness two
 * contradicting histories.
 */
import { Effect, Schema } from "effect"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { equalHashes } from "#events/merkle/MerkleTree.ts"
import type { Verifiers } from "#events/merkle/NoteKeys.ts"
import { readNodes, type ReadTiles } from "#events/merkle/Tiles.ts"
import { proveConsistency, verifyConsistency } from "#events/merkle/TreeProofs.ts"

/** The witness must not cosign the checkpoint; the message says why. */
export class WitnessRefused extends Schema.TaggedError<WitnessRefused>()("WitnessRefused", { message: Schema.String }) {}

/** The log did not return the checkpoint or tile that the witness requested. */
export class LogUnreadable extends Schema.TaggedError<LogUnreadable>()("LogUnreadable", { message: Schema.String }) {}

const refused = (message: string) => new WitnessRefused({ message })

/**
 * `note` is the new checkpoint. `last` is the checkpoint that the witness cosigned last, or null if it has not cosigned a
 * checkpoint yet. `readTiles` returns tiles that the witness does not trust.
 */
export interface WitnessQuestion<R> {
  readonly verifiers: Verifiers
  readonly last: string | null
  readonly note: string
  readonly readTiles: ReadTiles<LogUnreadable, R>
}

/** Returns the new checkpoint if the witness may cosign it. Fails with WitnessRefused or LogUnreadable. */
export const consistent = Effect.fnUntraced(function* <R>(
  crypto: PureCrypto,
  { last, note, readTiles, verifiers }: WitnessQuestion<R>
) {
  const open = (what: string, text: string) =>
    Effect.fromResult(Checkpoint.open(crypto, text, { origin: verifiers[0].name, verifiers })).pipe(
      Effect.mapError(({ message }) => refused(`${what}: ${message}`))
    )
  const next = yield* open("The checkpoint does not belong to this log", note)
  if (last === null) return next
  const seen = yield* open("The checkpoint that was cosigned last does not belong to this log", last)
  if (next.size < seen.size) {
    return yield* refused(
      `The log has ${next.size} events, but ${seen.size} were cosigned: events were removed, or this is an older copy of the log`
    )
  }
  const contradiction = refused(
    `The log contradicts itself: its ${next.size} events do not extend the ${seen.size} events that were cosigned. Keep both checkpoints: together they prove the contradiction`
  )
  if (next.size === seen.size) return equalHashes(next.root, seen.root) ? next : yield* contradiction
  const sizes = { oldSize: seen.size, newSize: next.size }
  const proof = yield* proveConsistency(crypto.sha256, readNodes(crypto.sha256, next.size, readTiles), sizes).pipe(
    Effect.catchTags({
      IncompleteTile: ({ message }) =>
        Effect.fail(refused(`The log does not prove that it extends the last checkpoint: ${message}`)),
      OutsideTree: Effect.die
    })
  )
  const holds = verifyConsistency(crypto.sha256, { ...sizes, oldRoot: seen.root, newRoot: next.root, proof })
  return holds ? next : yield* contradiction
})

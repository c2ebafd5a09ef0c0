/** What the signed tree hands out: checkpoints, tiles, and the proof that an event is in it. */
import { Effect, Option, Result } from "effect"
import { NotInLog } from "#domain/audit/AuditTrail.ts"
import { EvidenceAltered } from "#domain/audit/Integrity.ts"
import * as Checkpoint from "#events/merkle/Checkpoint.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { hashLength, leafHash } from "#events/merkle/MerkleTree.ts"
import { format } from "#events/merkle/Proof.ts"
import { parse as parseNote } from "#events/merkle/SignedNote.ts"
import { leafOf } from "#events/notary/StoredLeaf.ts"
import { parsePath, widthAt } from "#events/merkle/Tiles.ts"
import { proveInclusion, verifyInclusion } from "#events/merkle/TreeProofs.ts"
import { LogSigner } from "#events/notary/LogSigner.ts"
import type { StoredEvent } from "#events/store/StoredEvent.ts"
import { TreeStore } from "#events/notary/TreeStore.ts"

/** A checkpoint with the note that it was read from. */
export interface OpenCheckpoint extends Checkpoint.Checkpoint {
  readonly note: string
}

const altered = (what: string) => new EvidenceAltered({ what })

export const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const { keys, origin } = yield* LogSigner
  const tree = yield* TreeStore
  const { sha256 } = crypto

  /** Where no key is at hand, whoever gets the note verifies it. */
  const open = (note: string) =>
    Option.match(keys, {
      onSome: ({ verifiers }) => Checkpoint.open(crypto, note, { origin, verifiers }),
      onNone: () => Result.flatMap(parseNote(note), ({ text }) => Checkpoint.parse(text))
    })

  /** The newest checkpoint; none before the first one. */
  const newest = Effect.gen(function* () {
    const stored = yield* tree.newest
    if (Option.isNone(stored)) return Option.none<OpenCheckpoint>()
    const { note } = stored.value
    // The notary refuses to start on a checkpoint that it did not sign, so this one was put there meanwhile.
    const opened = yield* Effect.fromResult(open(note)).pipe(
      Effect.mapError(({ message }) => altered(`The newest checkpoint is not one of this log: ${message}`))
    )
    return Option.some<OpenCheckpoint>({ ...opened, note })
  })

  /** The hashes of a tile by its path below `tile/`, as far as they are signed. */
  const tile = Effect.fnUntraced(function* (path: string) {
    const none = new NotInLog({ what: "such tile in the signed log" })
    const wanted = Option.getOrNull(parsePath(`tile/${path}`))
    if (wanted === null || wanted.level === "entries") return yield* none
    const { index, level, width } = wanted
    const checkpoint = Option.getOrNull(yield* newest)
    if (checkpoint === null || widthAt(checkpoint.size, level, index) < width) return yield* none
    const [hashes = new Uint8Array()] = yield* tree.readTiles([{ index, level, width }])
    return hashes.length === width * hashLength ? hashes : yield* altered(`The tile ${path} is not as it was signed`)
  })

  /** The proof, alone sufficient, that an event is in the log of that checkpoint; its `extra` is the event's leaf. */
  const prove = Effect.fnUntraced(
    function* (event: StoredEvent, { note, root, size }: OpenCheckpoint) {
      const leaf = yield* Effect.fromResult(leafOf(crypto, event))
      const index = event.position
      const proof = yield* proveInclusion(sha256, tree.readNodes(size), { index, size })
      if (!verifyInclusion(sha256, { index, size, root, proof, leafHash: leafHash(sha256, leaf) })) {
        return yield* altered(`The event at position ${index} is not the one that was signed`)
      }
      return format({ index, hashes: proof, extra: Option.some(new TextEncoder().encode(leaf)), checkpoint: note })
    },
    Effect.catchTags({
      MalformedEnvelope: ({ message }) => Effect.fail(altered(message)),
      IncompleteTile: ({ message }) => Effect.fail(altered(message)),
      OutsideTree: Effect.die
    })
  )

  return { newest, tile, prove }
})

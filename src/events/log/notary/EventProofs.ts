/** Reads the newest checkpoint and the tiles of the signed tree, and proves that an event is in the tree. */
import { Effect, Option, Result } from "effect"
import { NotInLog } from "#domain/log/NotInLog.ts"
import { EvidenceAltered } from "#domain/log/Integrity.ts"
import * as Checkpoint from "#events/log/merkle/Checkpoint.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { hashLength, leafHash } from "#events/log/merkle/MerkleTree.ts"
import { format } from "#events/log/merkle/Proof.ts"
import { parse as parseNote } from "#events/log/merkle/SignedNote.ts"
import { leafOf } from "#events/log/notary/StoredLeaf.ts"
import { parsePath, widthAt } from "#events/log/merkle/Tiles.ts"
import { proveInclusion, verifyInclusion } from "#events/log/merkle/TreeProofs.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"

/** A parsed checkpoint, with the note that contains it. */
export interface OpenCheckpoint extends Checkpoint.Checkpoint {
  readonly note: string
}

const altered = (finding: string) => new EvidenceAltered({ finding })

export const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const { keys, origin } = yield* LogSigner
  const tree = yield* TreeStore
  const { sha256 } = crypto

  /** Parses a checkpoint, and verifies its signature if the service has the keys of the log. */
  const open = (note: string) =>
    Option.match(keys, {
      onSome: ({ verifiers }) => Checkpoint.open(crypto, note, { origin, verifiers }),
      onNone: () => Result.flatMap(parseNote(note), ({ text }) => Checkpoint.parse(text))
    })

  /** The newest checkpoint; none if the log was never signed. */
  const newest = Effect.gen(function* () {
    const stored = yield* tree.newest
    if (Option.isNone(stored)) return Option.none<OpenCheckpoint>()
    const { note } = stored.value
    // The notary verified the newest checkpoint when it started. If a checkpoint is invalid, it was therefore stored after this
    // start.
    const opened = yield* Effect.fromResult(open(note)).pipe(
      Effect.mapError(({ message }) => altered(`The newest checkpoint does not belong to this log: ${message}`))
    )
    return Option.some<OpenCheckpoint>({ ...opened, note })
  })

  /** Returns the hashes of the tile at a path below `tile/`. Fails with NotInLog if the newest checkpoint does not cover the whole tile. */
  const tile = Effect.fnUntraced(function* (path: string) {
    const none = new NotInLog({ missing: "such tile in the signed log" })
    const requested = Option.getOrNull(parsePath(`tile/${path}`))
    if (requested === null) return yield* none
    const { index, level, width } = requested
    const checkpoint = Option.getOrNull(yield* newest)
    if (checkpoint === null || widthAt(checkpoint.size, level, index) < width) return yield* none
    const [hashes = new Uint8Array()] = yield* tree.readTiles([{ index, level, width }])
    return hashes.length === width * hashLength ? hashes : yield* altered(`The tile ${path} differs from the signed tree`)
  })

  /** Returns the proof that an event is in the log of a checkpoint (Proof.ts). The proof carries the event's leaf as `extra`. */
  const prove = Effect.fnUntraced(
    function* (event: StoredEvent, { note, root, size }: OpenCheckpoint) {
      const leaf = yield* Effect.fromResult(leafOf(crypto, event))
      const index = event.position
      const proof = yield* proveInclusion(sha256, tree.readNodes(size), { index, size })
      if (!verifyInclusion(sha256, { index, size, root, proof, leafHash: leafHash(sha256, leaf) })) {
        return yield* altered(`The event at position ${index} differs from the signed event`)
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

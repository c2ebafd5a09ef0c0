/**
 * Proofs that stand alone, as C2SP tlog-proof defines them (c2sp.org/tlog-proof, version of 2026-05-22): an entry's
 * position, its inclusion proof and the signed checkpoint, in one text. Files with it end in `.tlog-proof`.
 */
import { Option, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import {
  open as openCheckpoint,
  parseCount,
  parseHash,
  type Checkpoint,
  type CheckpointRefused
} from "#events/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { leafHash, type Hash } from "#events/merkle/MerkleTree.ts"
import { decodeBase64, type Verifier } from "#events/merkle/NoteKeys.ts"
import type { NoteRefused } from "#events/merkle/SignedNote.ts"
import { verifyInclusion } from "#events/merkle/TreeProofs.ts"

/** The text is not a proof, or the entry is not where it says. */
export class ProofRefused extends Schema.TaggedError<ProofRefused>()("ProofRefused", {
  reason: Schema.Literals(["malformed", "not_included"]),
  message: Schema.String
}) {}

/** `extra` is free to use and is not authenticated; `checkpoint` is the signed note, verbatim. */
export interface Proof {
  readonly index: number
  readonly hashes: ReadonlyArray<Hash>
  readonly extra: Option.Option<Uint8Array>
  readonly checkpoint: string
}

const header = "c2sp.org/tlog-proof@v1"

/** No tree that a safe integer can count is deeper. */
const maxHashes = 53

const malformed = (message: string) => Result.fail(new ProofRefused({ reason: "malformed", message }))

/** Whether what the proof carries beside is that leaf, or nothing. It is not part of what is proved, so somebody may have changed it. */
export const carriesNoOther = ({ extra }: Proof, leaf: string): boolean =>
  Option.isNone(extra) || new TextDecoder().decode(extra.value) === leaf

export const format = ({ index, hashes, extra, checkpoint }: Proof): string =>
  [
    header,
    ...Option.match(extra, { onNone: () => [], onSome: (bytes) => [`extra ${Base64.encode(bytes)}`] }),
    `index ${index}`,
    ...hashes.map((hash) => Base64.encode(hash)),
    "",
    checkpoint
  ].join("\n")

/** Takes a proof apart without verifying anything. */
export const parse = (text: string): Result.Result<Proof, ProofRefused> => {
  const end = text.indexOf("\n\n")
  if (end === -1) return malformed("An empty line must stand before the checkpoint")
  const [first, ...lines] = text.slice(0, end).split("\n")
  if (first !== header) return malformed(`A proof begins with ${header}`)
  const hasExtra = lines[0]?.startsWith("extra ") === true
  const [indexLine = "", ...hashLines] = hasExtra ? lines.slice(1) : lines
  const index = indexLine.startsWith("index ") ? parseCount(indexLine.slice("index ".length)) : Option.none()
  if (Option.isNone(index)) return malformed("A proof has a line with the entry's index below 2^53, without leading zeros")
  const extra = hasExtra ? Option.map(decodeExtra(lines[0] ?? ""), Option.some) : Option.some(Option.none())
  if (Option.isNone(extra)) return malformed("The extra data must be base64, and the line be left out if there are none")
  const hashes = hashLines.length > maxHashes ? Option.none() : Option.all(hashLines.map(parseHash))
  if (Option.isNone(hashes)) return malformed(`The inclusion proof has up to ${maxHashes} lines of 32 bytes in base64`)
  return Result.succeed({ index: index.value, hashes: hashes.value, extra: extra.value, checkpoint: text.slice(end + 2) })
}

const decodeExtra = (line: string): Option.Option<Uint8Array> =>
  Option.filter(decodeBase64(line.slice("extra ".length)), (bytes) => bytes.length > 0)

/**
 * Verifies that `leaf` (its bytes, or text for its UTF-8 form) stands in the log, and says where and under which
 * checkpoint. `verifiers` are the keys of the log itself. Nothing here looks at `extra`.
 */
export const verify = (
  crypto: PureCrypto,
  text: string,
  claim: { readonly leaf: Uint8Array | string; readonly origin: string; readonly verifiers: ReadonlyArray<Verifier> }
): Result.Result<{ readonly index: number; readonly checkpoint: Checkpoint }, ProofRefused | NoteRefused | CheckpointRefused> =>
  Result.gen(function* () {
    const { index, hashes, checkpoint: note } = yield* parse(text)
    const checkpoint = yield* openCheckpoint(crypto, note, claim)
    const { size, root } = checkpoint
    const leaf = leafHash(crypto.sha256, claim.leaf)
    if (verifyInclusion(crypto.sha256, { index, size, root, leafHash: leaf, proof: hashes })) return { index, checkpoint }
    return yield* Result.fail(
      new ProofRefused({
        reason: "not_included",
        message: `The entry is not the one at position ${index} of ${checkpoint.origin}`
      })
    )
  })

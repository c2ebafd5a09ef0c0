/**
 * Self-contained proofs as C2SP tlog-proof defines them (c2sp.org/tlog-proof, version of 2026-05-22): the position of an entry,
 * its inclusion proof and the signed checkpoint in one text. The file extension is `.tlog-proof`.
 */
import { Option, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import {
  open as openCheckpoint,
  parseCount,
  parseHash,
  type Checkpoint,
  type CheckpointRefused
} from "#events/log/merkle/Checkpoint.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { leafHash, type Hash } from "#events/log/merkle/MerkleTree.ts"
import { decodeBase64, type Verifier } from "#events/log/merkle/NoteKeys.ts"
import type { NoteRefused } from "#events/log/merkle/SignedNote.ts"
import { verifyInclusion } from "#events/log/merkle/TreeProofs.ts"

/** The text is malformed, or the entry is not at the stated position. */
export class ProofRefused extends Schema.TaggedError<ProofRefused>()("ProofRefused", {
  reason: Schema.Literals(["malformed", "not_included"]),
  message: Schema.String
}) {}

/** `extra` is application data that the proof does not authenticate; `checkpoint` is the signed note, verbatim. */
export interface Proof {
  readonly index: number
  readonly hashes: ReadonlyArray<Hash>
  readonly extra: Option.Option<Uint8Array>
  readonly checkpoint: string
}

const header = "c2sp.org/tlog-proof@v1"

/** Maximum number of hashes: the depth of a tree with 2^53 leaves. */
const maxHashes = 53

const malformed = (message: string) => Result.fail(new ProofRefused({ reason: "malformed", message }))

/** Returns true if `extra` is empty or equals `leaf`. The proof does not authenticate `extra`, which may be the leaf of another event. */
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

/** Parses a proof without verifying it. */
export const parse = (text: string): Result.Result<Proof, ProofRefused> => {
  const end = text.indexOf("\n\n")
  if (end === -1) return malformed("A proof needs an empty line before the checkpoint")
  const [first, ...lines] = text.slice(0, end).split("\n")
  if (first !== header) return malformed(`A proof begins with ${header}`)
  const hasExtra = lines[0]?.startsWith("extra ") === true
  const [indexLine = "", ...hashLines] = hasExtra ? lines.slice(1) : lines
  const index = indexLine.startsWith("index ") ? parseCount(indexLine.slice("index ".length)) : Option.none()
  if (Option.isNone(index)) return malformed("A proof needs a line with the entry's index below 2^53, without leading zeros")
  const extra = hasExtra ? Option.map(decodeExtra(lines[0] ?? ""), Option.some) : Option.some(Option.none())
  if (Option.isNone(extra)) return malformed('The line "extra" needs data in base64; omit the line if there is no data')
  const hashes = hashLines.length > maxHashes ? Option.none() : Option.all(hashLines.map(parseHash))
  if (Option.isNone(hashes)) return malformed(`The inclusion proof has up to ${maxHashes} lines of 32 bytes in base64`)
  return Result.succeed({ index: index.value, hashes: hashes.value, extra: extra.value, checkpoint: text.slice(end + 2) })
}

const decodeExtra = (line: string): Option.Option<Uint8Array> =>
  Option.filter(decodeBase64(line.slice("extra ".length)), (bytes) => bytes.length > 0)

/**
 * Verifies that `leaf` (bytes, or text in its UTF-8 form) is in the log, and returns its position and the checkpoint. `verifiers` are
 * the public keys of the log. Ignores `extra`.
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
        message: `The leaf differs from the signed leaf at position ${index} of the log ${checkpoint.origin}`
      })
    )
  })

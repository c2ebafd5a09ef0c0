/**
 * The manifest of an export: the range of the exported positions, and the hashes of the Merkle subtrees over the positions before
 * and after this range. A verifier computes the signed root from these hashes and the exported events.
 */
import { Option, Result, Schema } from "effect"
import { Base64 } from "effect/encoding"
import { purposeIn } from "#domain/log/LogPurpose.ts"
import { parseHash } from "#events/log/merkle/Checkpoint.ts"
import { type Hash, type Node, type NodeId, nodesOf, restore, type Tree } from "#events/log/merkle/MerkleTree.ts"

const Hashes = Schema.Array(Schema.String)

/**
 * The export has the positions `from` (inclusive) to `to` (exclusive) of a log with `size` signed events. `before` and `after` are
 * the hashes of the complete subtrees over the positions before and after this range. The hashes are in base64, from left to right.
 */
export const ExportManifest = Schema.Struct({
  format: Schema.Literal("vatproof-export/1"),
  log: Schema.String,
  from: Schema.Int,
  to: Schema.Int,
  size: Schema.Int,
  recorded_from: Schema.NullOr(Schema.String),
  recorded_before: Schema.NullOr(Schema.String),
  exported_at: Schema.String,
  supplier: Schema.String,
  location: Schema.String,
  before: Hashes,
  after: Hashes
})
export type ExportManifest = typeof ExportManifest.Type

const codec = Schema.fromJsonString(ExportManifest)
const decode = Schema.decodeUnknownResult(codec)

/** Returns the content of the manifest's file. `sandbox: true` marks the export of a sandbox. */
export const format = (manifest: ExportManifest): string =>
  `${JSON.stringify({ ...manifest, ...(purposeIn(manifest.log) === "sandbox" ? { sandbox: true } : {}) }, null, 2)}\n`

export const parse = (text: string): Result.Result<ExportManifest, string> =>
  Result.mapError(decode(text), () => "the file is not the manifest of an export")

/** Returns the ids of the complete subtrees before and after the exported positions. */
export const otherNodes = ({ from, size, to }: Pick<ExportManifest, "from" | "to" | "size">) => ({
  before: nodesOf({ from: 0, to: from }),
  after: nodesOf({ from: to, to: size })
})

export const encodeHashes = (hashes: ReadonlyArray<Hash>) => hashes.map((hash) => Base64.encode(hash))

const withHashes = (nodes: ReadonlyArray<NodeId>, hashes: ReadonlyArray<string>): Option.Option<ReadonlyArray<Node>> =>
  nodes.length !== hashes.length
    ? Option.none()
    : Option.map(Option.all(hashes.map(parseHash)), (decoded) =>
        nodes.flatMap((node, i) => {
          const hash = decoded[i]
          return hash === undefined ? [] : [{ ...node, hash }]
        })
      )

/**
 * Returns the tree of the events before the exported positions, and the complete subtrees over the positions after them. Returns
 * none if the manifest has the wrong number of hashes or a malformed hash.
 */
export const surroundings = (
  manifest: ExportManifest
): Option.Option<{ readonly before: Tree; readonly after: ReadonlyArray<Node> }> => {
  const { after, before } = otherNodes(manifest)
  return Option.map(Option.all([withHashes(before, manifest.before), withHashes(after, manifest.after)]), ([left, right]) => ({
    before: restore(
      manifest.from,
      left.map(({ hash }) => hash)
    ),
    after: right
  }))
}

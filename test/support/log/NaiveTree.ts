/** Implements Merkle trees literally as in RFC 6962, section 2.1, as a reference for MerkleTree.ts. Caches the hashes of subtrees. */
import { createHash } from "node:crypto"

type Hashes = ReadonlyArray<Uint8Array>

const hash = (...parts: Hashes): Uint8Array => {
  const digest = createHash("sha256")
  parts.forEach((part) => digest.update(part))
  return new Uint8Array(digest.digest())
}

/** Returns k of RFC 6962: the largest power of two smaller than n. */
const splitOf = (n: number) => 2 ** Math.ceil(Math.log2(n) - 1)

export const naiveTree = (leaves: Hashes) => {
  const known = new Map<string, Uint8Array>()

  /** MTH(D[from:to]) of RFC 6962. */
  const root = (from: number, to: number): Uint8Array => {
    const found = known.get(`${from}:${to}`)
    if (found !== undefined) return found
    const computed = compute(from, to)
    known.set(`${from}:${to}`, computed)
    return computed
  }

  const compute = (from: number, to: number): Uint8Array => {
    if (to === from) return hash()
    if (to === from + 1) return hash(Uint8Array.of(0), leaves[from] ?? new Uint8Array())
    const k = splitOf(to - from)
    return hash(Uint8Array.of(1), root(from, from + k), root(from + k, to))
  }

  /** PATH(m, D[from:to]) of RFC 6962. */
  const inclusion = (m: number, from: number, to: number): Hashes => {
    if (to - from === 1) return []
    const k = splitOf(to - from)
    return m < k
      ? [...inclusion(m, from, from + k), root(from + k, to)]
      : [...inclusion(m - k, from + k, to), root(from, from + k)]
  }

  return {
    root,
    inclusion: (index: number, size: number) => inclusion(index, 0, size)
  }
}

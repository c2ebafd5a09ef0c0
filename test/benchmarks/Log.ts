/** What the notary costs an event. Run it with `node test/benchmarks/Log.ts`; nothing else does. */
import { Effect, Option, Result } from "effect"
import { encode } from "#events/log/CanonicalJson.ts"
import { open, sign } from "#events/log/Checkpoint.ts"
import { leafText, type EventEnvelope } from "#events/log/EventLeaf.ts"
import { append, empty, leafHash, root } from "#events/log/MerkleTree.ts"
import { format, verify } from "#events/log/Proof.ts"
import { growths, readNodes } from "#events/log/Tiles.ts"
import { proveInclusion } from "#events/log/TreeProofs.ts"
import { logCrypto } from "#infra/LogCrypto.ts"
import { signerOf } from "#test/support/log/Keys.ts"
import { upTo } from "#test/support/log/Logs.ts"

const { sha256, sha256Hex } = logCrypto
const batch = 500
const rounds = 200

const data = {
  vat_id: "DE123456789",
  outcome: "valid",
  answered_by: "vies",
  company_name: "Müller & Söhne GmbH",
  company_address: "Straße 1\n10115 Berlin",
  attempts: [{ source: "vies", outcome: "answered", code: null, started_at: "2026-11-21T09:30:00.000Z", duration_ms: 212 }],
  evidence: { request: "x".repeat(180), response: "y".repeat(420), http_status: 200 }
}
const dataText = Result.getOrThrow(encode(data))

const envelopeAt = (position: number): EventEnvelope => ({
  log_id: 0,
  position,
  stream_id: "key-019371c0-5f00-7000-8000-000000000001",
  version: position + 1,
  event_id: "019371c0-5f00-7000-8000-0000000000aa",
  type: "VatIdVerified",
  schema_version: 1,
  occurred_at: "2026-11-21T09:30:00.123456Z",
  recorded_at: "2026-11-21T09:30:00.130000Z",
  correlation_id: "019371c0-5f00-7000-8000-0000000000ab",
  causation_id: null,
  trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
  meter_id: "account-019371c0-5f00-7000-8000-0000000000ac/2026-11",
  units: 1,
  data_sha256: sha256Hex(dataText),
  metadata_sha256: sha256Hex("{}")
})

/** The median over the rounds of `work`, in microseconds for each of its `count` parts. */
const measure = (name: string, count: number, work: () => unknown) => {
  const times = upTo(rounds).map(() => {
    const start = process.hrtime.bigint()
    work()
    return Number(process.hrtime.bigint() - start) / 1000 / count
  })
  const median = times.toSorted((a, b) => a - b)[rounds / 2] ?? 0
  console.log(`${name.padEnd(56)} ${median.toFixed(2).padStart(8)} µs`)
}

const envelopes = upTo(batch).map(envelopeAt)
const texts = envelopes.map((envelope) => Result.getOrThrow(leafText(envelope)))
const hashes = texts.map((text) => leafHash(sha256, text))
const bytes = texts.map((text) => new TextEncoder().encode(text))

measure("canonical JSON of an event's data (1 kB)", batch, () => upTo(batch).map(() => encode(data)))
measure("digests of data and metadata", batch, () => upTo(batch).map(() => [sha256Hex(dataText), sha256Hex("{}")]))
measure("leaf text", batch, () => envelopes.map(leafText))
measure("leaf text, by the general encoder", batch, () => envelopes.map(encode))
measure("leaf hash of text", batch, () => texts.map((text) => leafHash(sha256, text)))
measure("leaf hash of bytes", batch, () => bytes.map((leaf) => leafHash(sha256, leaf)))
measure("append to the tree", batch, () => append(sha256, empty, hashes))
measure("append, and cut into tiles", batch, () => growths(append(sha256, empty, hashes).nodes))
measure("an event in all", batch, () => {
  const leaves = upTo(batch).map((position) => leafHash(sha256, Result.getOrThrow(leafText(envelopeAt(position)))))
  return growths(append(sha256, empty, leaves).nodes)
})

const origin = "vatproof.example/log0"
const signer = signerOf(origin)
const log = append(sha256, empty, hashes)
const tiles = new Map(growths(log.nodes).map((tile) => [`${tile.level}/${tile.index}`, tile.hashes]))
const reader = readNodes(sha256, batch, (asked) =>
  Effect.succeed(asked.map(({ level, index }) => tiles.get(`${level}/${index}`) ?? new Uint8Array()))
)
// oxlint-disable-next-line vatproof/no-effect-run -- a benchmark times single runs, not a program
const prove = () => Effect.runSync(proveInclusion(sha256, reader, { index: 123, size: batch }))
const checkpoint = { origin, size: batch, root: root(sha256, log.tree), extensions: [] }
const note = Result.getOrThrow(sign(checkpoint, [signer]))
const proof = format({ index: 123, hashes: prove(), extra: Option.none(), checkpoint: note })
const claim = { leaf: texts[123] ?? "", origin, verifiers: [signer] }

measure("a signed checkpoint", 1, () => sign(checkpoint, [signer]))
measure("a checkpoint opened", 1, () => open(logCrypto, note, claim))
measure("an inclusion proof, from tiles", 1, prove)
measure("a .tlog-proof verified", 1, () => verify(logCrypto, proof, claim))

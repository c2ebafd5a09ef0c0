/** Computes the leaves of stored events. */
import { Result, Schema } from "effect"
import { leafText, type MalformedEnvelope } from "#events/log/merkle/EventLeaf.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { leafHash, type Hash, type Range } from "#events/log/merkle/MerkleTree.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** The event at a position is missing in the log. */
export class MissingEvent extends Schema.TaggedError<MissingEvent>()("MissingEvent", { position: Schema.Int }) {
  override get message() {
    return `The event at position ${this.position} is missing`
  }
}

/** Returns the leaf of an event as text: its envelope, with the SHA-256 of the stored bytes of data and metadata. */
export const leafOf = (crypto: PureCrypto, event: StoredEvent): Result.Result<string, MalformedEnvelope> =>
  leafText({
    log_id: event.log_id,
    position: event.position,
    stream_id: event.stream_id,
    version: event.version,
    event_id: event.event_id,
    type: event.type,
    schema_version: event.schema_version,
    occurred_at: event.occurred_at,
    recorded_at: event.recorded_at,
    correlation_id: event.correlation_id,
    causation_id: event.causation_id,
    trace_id: event.trace_id,
    meter_id: event.meter_id,
    units: event.units,
    data_sha256: crypto.sha256Hex(event.data),
    metadata_sha256: crypto.sha256Hex(event.metadata)
  })

/** Returns the leaf hashes of the events `from` (inclusive) to `to` (exclusive). Fails if an event is missing or malformed. */
export const leafHashes = (
  crypto: PureCrypto,
  events: ReadonlyArray<StoredEvent>,
  { from, to }: Range
): Result.Result<ReadonlyArray<Hash>, MissingEvent | MalformedEnvelope> => {
  const hashes: Array<Hash> = []
  for (const event of events) {
    if (event.position !== from + hashes.length) break
    const leaf = leafOf(crypto, event)
    if (Result.isFailure(leaf)) return Result.fail(leaf.failure)
    hashes.push(leafHash(crypto.sha256, leaf.success))
  }
  return hashes.length === to - from ? Result.succeed(hashes) : Result.fail(new MissingEvent({ position: from + hashes.length }))
}

/** Compares the chunks of batches with the digests and numbers in the events that accepted the batches. */
import { Option, Schema } from "effect"
import { BatchAccepted, batchItems, BatchItemsAccepted } from "#domain/pending/Batch.ts"
import type { SubjectCheck, SubjectCheckOptions } from "#events/log/verify/SubjectCheck.ts"
import { digestOf } from "#events/pending/ChunkDigest.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

const decodeAccepted = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.toCodecJson(BatchAccepted.schema)))
const decodeItems = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.toCodecJson(BatchItemsAccepted.schema)))

/** An accepted batch with chunks that were not compared yet. `chunks` and `counts` belong to the compared chunks. */
interface OpenBatch {
  readonly accepted: typeof BatchAccepted.schema.Type
  chunks: number
  counts: ReadonlyArray<number>
}

const make = ({ begins, crypto, findings }: SubjectCheckOptions) => {
  const open = new Map<string, OpenBatch>()

  const isNext = ({ accepted, chunks }: OpenBatch, items: typeof BatchItemsAccepted.schema.Type) =>
    accepted.chunks[chunks] === digestOf(crypto, items) &&
    items.first === chunks * batchItems.chunk &&
    items.key_id === accepted.key_id &&
    items.account_id === accepted.account_id

  const compare = (position: number, items: typeof BatchItemsAccepted.schema.Type | null) => {
    const batch = items === null ? undefined : open.get(items.batch_id)
    if (items === null || (batch === undefined ? begins : !isNext(batch, items)))
      return findings.add(position, "the items of the batch differ from the items that were accepted")
    if (batch === undefined) return
    const malformed = items.vat_ids.filter((vatId) => vatId === null).length
    const counts = [items.vat_ids.length, malformed, Object.keys(items.duplicate_of).length]
    batch.counts = counts.map((count, index) => count + (batch.counts[index] ?? 0))
    batch.chunks += 1
    const { accepted, chunks } = batch
    if (chunks < accepted.chunks.length) return
    open.delete(items.batch_id)
    if (batch.counts.join() !== [accepted.items, accepted.malformed, accepted.duplicates].join())
      findings.add(position, "the number of items of the batch differs from the number that was accepted")
  }

  return (event: StoredEvent) => {
    if (event.type === BatchItemsAccepted.type) compare(event.position, Option.getOrNull(decodeItems(event.data)))
    if (event.type !== BatchAccepted.type) return
    const accepted = Option.getOrNull(decodeAccepted(event.data))
    if (accepted?.batch_id !== event.event_id) findings.add(event.position, "the event has the id of another batch")
    else open.set(event.event_id, { accepted, chunks: 0, counts: [] })
  }
}

export const check: SubjectCheck = { types: [BatchAccepted.type, BatchItemsAccepted.type], make }

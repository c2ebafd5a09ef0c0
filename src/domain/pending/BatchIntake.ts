/** Sorts the items of an upload into chunks while they arrive. Of the items before it keeps the VAT IDs alone, to find duplicates. */
import { Result } from "effect"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { batchItems, type BatchItem } from "#domain/pending/Batch.ts"
import type { BatchChunk } from "#domain/pending/BatchSpool.ts"
import * as VatIds from "#domain/vat/VatId.ts"

export const make = ({ sha256Hex }: Pick<PureCrypto, "sha256Hex">) => {
  /** The number of the first item with a VAT ID. */
  const firsts = new Map<string, number>()
  const counts = { chunks: 0, items: 0, malformed: 0, duplicates: 0 }
  let open: ReadonlyArray<BatchItem> = []
  let hash = ""

  const read = ({ customId, input }: BatchItem, item: number) => {
    const vatId = Result.getOrNull(VatIds.parse(input))?.value ?? null
    const duplicateOf = vatId === null ? undefined : firsts.get(vatId)
    if (vatId === null) counts.malformed += 1
    else if (duplicateOf === undefined) firsts.set(vatId, item)
    else counts.duplicates += 1
    return { customId, duplicateOf, item, malformed: vatId === null ? input : null, vatId }
  }

  const close = (items: ReadonlyArray<BatchItem>): BatchChunk => {
    const rows = items.map((item, index) => read(item, counts.items + index))
    counts.items += items.length
    counts.chunks += 1
    hash = sha256Hex(hash + JSON.stringify(items))
    return {
      questions: {
        vat_ids: rows.map(({ vatId }) => vatId),
        duplicate_of: Object.fromEntries(
          rows.flatMap(({ duplicateOf, item }) => (duplicateOf === undefined ? [] : [[item, duplicateOf]]))
        )
      },
      document: { custom_ids: rows.map(({ customId }) => customId), malformed: rows.map(({ malformed }) => malformed) }
    }
  }

  /** Takes items, and returns the chunks that are full. */
  const add = (items: ReadonlyArray<BatchItem>): ReadonlyArray<BatchChunk> => {
    open = [...open, ...items]
    const full: Array<BatchChunk> = []
    while (open.length >= batchItems.chunk) {
      full.push(close(open.slice(0, batchItems.chunk)))
      open = open.slice(batchItems.chunk)
    }
    return full
  }

  return {
    add,
    /** The last chunk, the counts, and the same hash for the same items. */
    end: () => {
      const chunks = open.length === 0 ? [] : [close(open)]
      return { chunks, hash, counts: { ...counts } }
    }
  }
}

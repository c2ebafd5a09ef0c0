/**
 * Groups the items of an upload into chunks while they arrive. Of earlier items, only the VAT IDs and digests of their questions stay in
 * memory, to find duplicates. Items with the same VAT ID and different requesters or company data are no duplicates.
 */
import { Result } from "effect"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import { batchItems, type BatchItem } from "#domain/pending/Batch.ts"
import type { AcceptedDocument } from "#domain/validation/ValidationTask.ts"
import type { BatchChunk } from "#domain/pending/BatchSpool.ts"
import * as VatIds from "#domain/vat/VatId.ts"

export const make = ({ sha256Hex }: Pick<PureCrypto, "sha256Hex">) => {
  /** The number of the first item with each question. */
  const firstItems = new Map<string, number>()
  const counts = { items: 0, malformed: 0, duplicates: 0 }
  let hasDetails = false
  let buffered: ReadonlyArray<BatchItem> = []
  let hash = ""

  const questionOf = (vatId: string, { reference: _, ...asked }: AcceptedDocument = {}) =>
    Object.keys(asked).length === 0 ? vatId : `${vatId}/${sha256Hex(JSON.stringify(asked))}`

  const classify = ({ customId, details, input }: BatchItem, item: number) => {
    const vatId = Result.getOrNull(VatIds.parse(input))?.value ?? null
    const question = vatId === null ? "" : questionOf(vatId, details)
    const duplicateOf = firstItems.get(question)
    if (vatId === null) counts.malformed += 1
    else if (duplicateOf === undefined) firstItems.set(question, item)
    else counts.duplicates += 1
    return { customId, duplicateOf, item, malformed: vatId === null ? input : null, vatId }
  }

  const toChunk = (items: ReadonlyArray<BatchItem>): BatchChunk => {
    const rows = items.map((item, index) => classify(item, counts.items + index))
    const areDetailed = items.some(({ details }) => details !== undefined)
    hasDetails ||= areDetailed
    counts.items += items.length
    const chunk = {
      questions: {
        vat_ids: rows.map(({ vatId }) => vatId),
        duplicate_of: Object.fromEntries(
          rows.flatMap(({ duplicateOf, item }) => (duplicateOf === undefined ? [] : [[item, duplicateOf]]))
        )
      },
      document: {
        custom_ids: rows.map(({ customId }) => customId),
        malformed: rows.map(({ malformed }) => malformed),
        ...(areDetailed ? { details: items.map(({ details = {} }) => details) } : {}),
        ...(items[0]?.additional === undefined ? {} : { additional: items.map(({ additional = [] }) => additional) }),
        ...(items[0]?.columns === undefined ? {} : { columns: items[0].columns })
      }
    }
    hash = sha256Hex(hash + JSON.stringify(chunk))
    return chunk
  }

  /** Adds items. Returns the chunks that are now full. */
  const add = (items: ReadonlyArray<BatchItem>): ReadonlyArray<BatchChunk> => {
    buffered = [...buffered, ...items]
    const full: Array<BatchChunk> = []
    while (buffered.length >= batchItems.chunk) {
      full.push(toChunk(buffered.slice(0, batchItems.chunk)))
      buffered = buffered.slice(batchItems.chunk)
    }
    return full
  }

  return {
    add,
    /** Returns the last chunk, the counts, and a hash of all items. */
    end: () => {
      const chunks = buffered.length === 0 ? [] : [toChunk(buffered)]
      return { chunks, hash, counts: { ...counts, hasDetails } }
    }
  }
}

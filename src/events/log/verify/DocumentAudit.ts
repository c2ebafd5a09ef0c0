/** Compares personal documents with the digests in their events, and reports missing, wrong and surplus documents. */
import { Option, Predicate } from "effect"
import { PersonalDataErased, PersonalDataHeld } from "#domain/log/PersonalData.ts"
import type { DocumentRow } from "#events/log/verify/AuditReads.ts"
import type { Findings } from "#events/log/verify/Findings.ts"
import type { PureCrypto } from "#domain/kernel/Crypto.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Numbers of intact documents, and of events whose document is erased. */
export interface DocumentCounts {
  readonly kept: number
  readonly erased: number
}

/** The type of the newest event that erased, held or released a personal document. `by` is the position of this event. */
interface Change {
  readonly type: string
  readonly by: number
}

export const make = (crypto: PureCrypto, findings: Findings) => {
  const counts = { kept: 0, erased: 0 }
  const expected = new Map<number, Change>()
  /** Documents that were erased, held or released according to their row. */
  const changed = new Map<number, DocumentRow>()

  /** Compares a stored document with the digest in the data of its event. */
  const compare = (position: number, data: unknown, stored: PersonalDocument.Stored) => {
    const digest = Option.getOrNull(PersonalDocument.digestIn(data))
    if (digest === null) {
      if (stored !== undefined) findings.add(position, "there is a personal document, but the event has no digest of one")
      return
    }
    const state = PersonalDocument.stateOf(crypto.sha256Hex, digest, stored)
    if (state !== "altered") counts[state] += 1
    else if (stored === undefined) findings.add(position, "the personal document is missing")
    else findings.add(position, "the personal document does not match the digest in its event")
  }

  const compareRow = (event: StoredEvent, row: DocumentRow | undefined) => {
    const data = EventLine.readData(event)
    compare(event.position, data, row?.document)
    if (row === undefined) return
    if (row.document === null || row.isHeld || row.changedBy !== null) changed.set(event.position, row)
    const until = Predicate.hasProperty(data, "retain_until") ? data.retain_until : undefined
    if (until !== row.retainUntil)
      findings.add(event.position, `the personal document is kept until ${row.retainUntil}, but the event says ${until}`)
  }

  return {
    compare,
    /**
     * Compares the personal documents of these events with the digests in the events. Also collects the recorded erasures and legal
     * holds, which `conclude` compares.
     */
    compareAll: (events: ReadonlyArray<StoredEvent>, rows: ReadonlyMap<number, DocumentRow>) => {
      for (const event of events) {
        const row = rows.get(event.position)
        // Most events have no personal document. Not parsing the data of these events saves time.
        if (row !== undefined || event.data.includes('"personal_sha256":')) compareRow(event, row)
        for (const position of PersonalDocument.positionsIn(event))
          expected.set(position, { type: event.type, by: event.position })
      }
    },
    /**
     * Compares the erased and held documents with the events that record an erasure or a legal hold. The caller must have passed all
     * events before position `end` to `compareAll`. `head` is the current number of events, which can be greater than `end`.
     */
    conclude: (end: number, head: number) => {
      for (const position of new Set([...expected.keys(), ...changed.keys()])) {
        const row = changed.get(position)
        const change = expected.get(position)
        const changedBy = row?.changedBy ?? null
        if (changedBy !== null && changedBy >= end) {
          // An event at position `end` or later was appended during this verification. The next verification compares it.
          if (changedBy >= head)
            findings.add(position, `the personal document was changed by event ${changedBy}, which does not exist`)
          continue
        }
        const isErased = row !== undefined && row.document === null
        if (isErased && change?.type !== PersonalDataErased.type) {
          findings.add(position, "the personal document is erased, but no event records the erasure")
        } else if (!isErased && change?.type === PersonalDataErased.type) {
          findings.add(position, `event ${change.by} erased the personal document, but the document still exists`)
        } else if ((row?.isHeld ?? false) !== (change?.type === PersonalDataHeld.type)) {
          findings.add(position, "the legal hold on the personal document contradicts the events")
        } else if (changedBy !== (change?.by ?? null)) {
          findings.add(position, "the row of the personal document names the wrong event for its last change")
        }
      }
    },
    counts: (): DocumentCounts => ({ ...counts })
  }
}

/** Holds personal documents against the digests in their events: that they are all there, right, and no more. */
import { Effect, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/AppendCommand.ts"
import type { Findings } from "#events/audit/Findings.ts"
import type { LogCrypto } from "#events/log/LogCrypto.ts"
import * as EventLine from "#events/log/EventLine.ts"
import * as PersonalDocument from "#events/PersonalDocument.ts"
import * as StoreAccess from "#events/StoreAccess.ts"
import type { StoredEvent } from "#events/StoredEvent.ts"

/** An audit may wait for a database that is just coming back. */
const patience = "30 seconds"

/** Reads the documents of a database. */
export const makeReads = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ from: Schema.Int, to: Schema.Int }),
    Result: Schema.Struct({ position: Schema.BigInt, document: Schema.NullOr(Schema.String) }),
    execute: ({ from, to }) => sql`SELECT position, document FROM vatproof.personal_documents
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to} ORDER BY position`
  })

  const findStrangers = SqlSchema.findAll({
    Request: Schema.Int,
    Result: Schema.Struct({ log_id: Schema.Int, position: Schema.BigInt }),
    execute: (head) => sql`(SELECT log_id, position FROM vatproof.personal_documents WHERE log_id < ${logId} LIMIT 10)
      UNION ALL (SELECT log_id, position FROM vatproof.personal_documents WHERE log_id > ${logId} LIMIT 10)
      UNION ALL (SELECT log_id, position FROM vatproof.personal_documents WHERE log_id = ${logId} AND position < 0 LIMIT 10)
      UNION ALL (SELECT log_id, position FROM vatproof.personal_documents WHERE log_id = ${logId} AND position >= ${head}
        AND position >= (SELECT next_position FROM vatproof.logs WHERE log_id = ${logId}) ORDER BY position LIMIT 10)`
  })

  return {
    /** Those of positions `from` up to `to`, in their order; null once erased. */
    between: (from: number, to: number) =>
      find({ from, to }).pipe(
        StoreAccess.patiently(patience),
        Effect.map((rows): ReadonlyMap<number, string | null> => new Map(rows.map((row) => [Number(row.position), row.document])))
      ),
    /** Some of those that belong to no event: in no known log, or beyond its end. */
    strangers: (head: number) => findStrangers(head).pipe(StoreAccess.patiently(patience))
  }
})

/** How many documents were found as they were written, and how many events say that theirs is erased. */
export interface DocumentCounts {
  readonly kept: number
  readonly erased: number
}

export interface DocumentAudit {
  /** Compares the document stored for a position with the data of its event. */
  readonly compare: (position: number, data: unknown, stored: PersonalDocument.Stored) => void
  /** Compares the documents stored for these events. */
  readonly compareAll: (events: ReadonlyArray<StoredEvent>, stored: ReadonlyMap<number, string | null>) => void
  readonly counts: () => DocumentCounts
}

export const make = (crypto: LogCrypto["Service"], findings: Findings): DocumentAudit => {
  const counts = { kept: 0, erased: 0 }

  const compare: DocumentAudit["compare"] = (position, data, stored) => {
    const digest = Option.getOrNull(PersonalDocument.digestIn(data))
    if (digest === null) {
      if (stored !== undefined) findings.add(position, "it has a personal document, but its event knows of none")
      return
    }
    const state = PersonalDocument.stateOf(crypto.sha256Hex, digest, stored)
    if (state !== "altered") counts[state] += 1
    else if (stored === undefined) findings.add(position, "its personal document is missing")
    else findings.add(position, "its personal document is not the one that was signed")
  }

  return {
    compare,
    compareAll: (events, documents) => {
      for (const event of events) {
        const stored = documents.get(event.position)
        // Most events have no document: they are not parsed.
        const hasDigest = event.data.includes('"personal_sha256":')
        if (hasDigest || stored !== undefined) compare(event.position, EventLine.readData(event), stored)
      }
    },
    counts: () => ({ ...counts })
  }
}

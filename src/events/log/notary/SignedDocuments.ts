/** Reads the personal documents of events, and compares them with the events before they are served. */
import { Effect, Exit, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity } from "#domain/log/Integrity.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { PersonalDataErased } from "#domain/log/PersonalData.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import * as PersonalDocument from "#events/log/store/PersonalDocument.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

const retryFor = "5 seconds"
/** Maximum number of callers whose documents one statement reads. A caller asks for at most a page of documents. */
const maxBatch = 32

const Row = Schema.Struct({
  position: Schema.BigInt,
  document: Schema.NullOr(Schema.String),
  changed_by: Schema.NullOr(Schema.BigInt)
})

/**
 * Creates a function that returns the documents of events by position; null once erased. The request fails with EVIDENCE_ALTERED if a
 * document does not match the digest in its event, or is erased without an event that says so.
 */
export const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const integrity = yield* Integrity
  const { verified } = yield* SignedLeaves.make

  // LIMIT 1 keeps the planner from a join that reads all documents.
  const find = SqlSchema.findAll({
    Request: Schema.Array(Schema.Int),
    Result: Row,
    execute: (positions) => sql`SELECT u.position, d.document, d.changed_by
      FROM unnest(${sqlArray(positions.map(BigInt), elementType.int8)}) AS u(position) CROSS JOIN LATERAL (
        SELECT document, changed_by FROM vatproof.personal_documents WHERE log_id = ${logId} AND position = u.position LIMIT 1) d`
  })
  const findChanges = SqlSchema.findAll({
    Request: Schema.Array(Schema.BigInt),
    Result: StoredEvent,
    execute: (positions) => sql`SELECT ${sql.literal(StoredEvent.columnsOf("e"))}
      FROM unnest(${sqlArray(positions, elementType.int8)}) AS u(position) CROSS JOIN LATERAL (
        SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events WHERE log_id = ${logId} AND position = u.position LIMIT 1) e`
  })

  /** Reads the documents of all waiting callers in one statement. */
  const join = yield* GroupCommit.make({
    maxBatch,
    run: (asked: ReadonlyArray<ReadonlyArray<number>>) =>
      Effect.map(find([...new Set(asked.flat())]).pipe(QueryPolicy.withRetryForMany(retryFor)), (rows) => {
        const byPosition = new Map(rows.map((row) => [Number(row.position), row]))
        return asked.map((positions) => Exit.succeed(positions.flatMap((position) => byPosition.get(position) ?? [])))
      })
  })

  /** Returns the positions that the signed events at these positions erased. */
  const erasedBy = Effect.fnUntraced(function* (positions: ReadonlyArray<bigint>) {
    if (positions.length === 0) return new Set<number>()
    const changes = yield* verified(yield* findChanges([...new Set(positions)]).pipe(QueryPolicy.withRetry(retryFor)))
    return new Set(changes.filter(({ type }) => type === PersonalDataErased.type).flatMap(PersonalDocument.positionsIn))
  })

  return Effect.fnUntraced(function* (events: ReadonlyArray<Pick<StoredEvent, "data" | "position">>) {
    const digests = new Map<number, string>()
    for (const event of events) {
      const digest = Option.getOrNull(PersonalDocument.digestIn(EventLine.readData(event)))
      if (digest !== null) digests.set(event.position, digest)
    }
    const rows = digests.size === 0 ? [] : yield* join([...digests.keys()])
    const documents = new Map(rows.map(({ document, position }) => [Number(position), document]))
    const erased = yield* erasedBy(rows.flatMap(({ changed_by, document }) => (document === null ? (changed_by ?? []) : [])))
    for (const [position, digest] of digests) {
      const state = PersonalDocument.stateOf(crypto.sha256Hex, digest, documents.get(position))
      const what = state === "altered" ? "does not match the digest in its event" : "is erased, but no event records the erasure"
      if (state === "altered" || (state === "erased" && !erased.has(position)))
        return yield* integrity.refuse("event", `The personal document at position ${position} ${what}`)
    }
    return documents
  })
})

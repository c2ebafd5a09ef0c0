/** Reads the newest answer for a VAT ID from `vatproof.latest`, which the append keeps current. */
import { Effect, Exit, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AnswerCache, CachedAnswer, latestKey, type StoredAnswer } from "#domain/vat/AnswerCache.ts"
import { EvidenceAltered, Integrity } from "#domain/log/Integrity.ts"
import type { VatId } from "#domain/vat/VatId.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"

/**
 * Returns the text of the finding that a stored answer differs from its event. An answer is compared with its event when a process
 * reads it into its cache, not at each cache hit.
 */
const altered = (position: bigint) => `The newest answer for a VAT ID differs from its event at position ${position}`

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const integrity = yield* Integrity

  const findNewest = SqlSchema.findAll({
    Request: Schema.Array(Schema.String),
    Result: Schema.Struct({
      key: Schema.String,
      position: Schema.BigInt,
      as_of: Schema.BigInt,
      answer: Schema.fromJsonString(CachedAnswer),
      of_event: Schema.Boolean
    }),
    execute: (keys) => sql`SELECT key, position, as_of, answer, of_event
      FROM vatproof.newest_answers(${logId}::smallint, ${sqlArray(keys, elementType.text)})`
  })

  const run = Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
    const rows = yield* findNewest([...new Set(keys)]).pipe(QueryPolicy.withRetryForMany(retryFor))
    const byKey = new Map(rows.map((row) => [row.key, row]))
    for (const { of_event, position } of rows) if (!of_event) yield* integrity.reportAltered("answer", altered(position))
    return keys.map((key) => {
      const row = byKey.get(key)
      if (row === undefined) return Exit.succeed(Option.none<StoredAnswer>())
      if (!row.of_event) return Exit.die(new EvidenceAltered({ finding: altered(row.position) }))
      return Exit.succeed(
        Option.some<StoredAnswer>({ position: Number(row.position), asOf: Number(row.as_of), answer: row.answer })
      )
    })
  })

  const find = yield* GroupCommit.make({ run, procedure: "newest_answers" })

  const newest = (vatId: VatId) => find(latestKey(vatId))

  const ping = sql`SELECT 1`.pipe(QueryPolicy.withRetry("0 millis"), Effect.asVoid)

  return AnswerCache.of({ newest, refresh: newest, ping })
})

export const layer = Layer.effect(AnswerCache, make)

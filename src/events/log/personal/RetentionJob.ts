/** Erases personal documents whose retention period is over, each hour on every replica. */
import { Array as Arr, DateTime, Effect, Layer, Result, Schedule, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Integrity } from "#domain/log/Integrity.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import {
  maxPositions,
  PersonalDataErased,
  PersonalDataHeld,
  PersonalDataReleased,
  personalDataStream
} from "#domain/log/PersonalData.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as SignedLeaves from "#events/log/notary/SignedLeaves.ts"
import { makeChange } from "#events/log/personal/DocumentChanges.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventTypes from "#events/log/store/EventTypes.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

const every = "1 hour"
/** Timeout of a statement, which is also the time for which it is retried. */
const retryFor = "30 seconds"

const decodeHold = EventTypes.decoder(PersonalDataHeld)

const Expired = Schema.Struct({ ...StoredEvent.fields, retain_until: Schema.DateTimeUtcFromDate, may_go: Schema.Boolean })

const makeQueries = Effect.fnUntraced(function* (mayErase: string) {
  const sql = yield* SqlClient.SqlClient
  const columns = sql.literal(StoredEvent.columns)
  return {
    findHolds: SqlSchema.findAll({
      Request: Schema.Void,
      Result: StoredEvent,
      execute: () => sql`SELECT ${columns} FROM vatproof.events WHERE log_id = ${logId} AND stream_id = ${personalDataStream}
        AND type IN (${PersonalDataHeld.type}, ${PersonalDataReleased.type}) ORDER BY version`
    }),
    findExpired: SqlSchema.findAll({
      Request: Schema.Struct({ after: Schema.DateTimeUtcFromDate, position: Schema.Int }),
      Result: Expired,
      execute: ({
        after,
        position
      }) => sql`SELECT ${sql.literal(StoredEvent.columnsOf("e"))}, d.retain_until, (${sql.literal(mayErase)}) AS may_go
        FROM (SELECT position, retain_until FROM vatproof.personal_documents
          WHERE log_id = ${logId} AND document IS NOT NULL AND NOT is_held AND (retain_until, position) > (${after}, ${position})
            AND retain_until <= now() ORDER BY retain_until, position LIMIT ${maxPositions}) d
        CROSS JOIN LATERAL (SELECT ${columns} FROM vatproof.events WHERE log_id = ${logId} AND position = d.position LIMIT 1) e
        ORDER BY d.retain_until, d.position`
    })
  }
})

/**
 * Creates the effect that erases the documents whose retention period is over, `maxPositions` at a time, and returns their number. A document is
 * erased only if its signed event has the same end of the period, no signed event holds it, and the SQL condition `mayErase` on its event `e` is true.
 */
export const makeEraseExpired = Effect.fnUntraced(function* (mayErase: string) {
  const change = yield* makeChange
  const integrity = yield* Integrity
  const { altered, verified } = yield* SignedLeaves.make
  const { findExpired, findHolds } = yield* makeQueries(mayErase)

  const findHeld = Effect.gen(function* () {
    const held = new Set<number>()
    for (const { data, type } of yield* findHolds().pipe(QueryPolicy.withRetry(retryFor), Effect.flatMap(verified)))
      for (const position of (yield* decodeHold(data)).positions)
        if (type === PersonalDataHeld.type) held.add(position)
        else held.delete(position)
    return held
  })

  /** Returns the positions of the documents that may be erased, and reports those that the signed events keep. */
  const provenIn = Effect.fnUntraced(function* (rows: ReadonlyArray<typeof Expired.Type>, held: ReadonlySet<number>) {
    const wrong = new Set((yield* altered(rows)).map(({ position }) => position))
    const [proven, kept] = Arr.partition(rows, ({ data, position, retain_until }) => {
      const isDue = data.includes(`"retain_until":"${DateTime.formatIso(retain_until)}"`)
      return isDue && !wrong.has(position) && !held.has(position) ? Result.succeed(position) : Result.fail(position)
    })
    for (const position of kept)
      yield* integrity.reportAltered(
        "event",
        `The personal document at position ${position} is due for erasure against its signed events`
      )
    if (kept.length > 0)
      yield* Effect.logError(`Personal documents are not erased, because their signed events keep them: ${kept.join(", ")}`)
    return proven
  })

  return Effect.gen(function* () {
    let erased = 0
    let after = { after: DateTime.makeUnsafe(0), position: -1 }
    const held = yield* findHeld
    for (;;) {
      const rows = yield* findExpired(after).pipe(QueryPolicy.withRetry(retryFor))
      const positions = yield* provenIn(
        rows.filter(({ may_go }) => may_go),
        held
      )
      // If another command changed one of the documents first, this step erases none of them. The next run of the job finds them
      // again.
      erased += yield* change(positions, PersonalDataErased.make({ positions, cause: "retention" })).pipe(
        Effect.as(positions.length),
        Effect.catchTag("DocumentsChanged", () => Effect.succeed(0))
      )
      const last = rows.at(-1)
      if (last === undefined || rows.length < maxPositions) return erased
      after = { after: last.retain_until, position: last.position }
    }
  })
})

export const layer = (mayErase: string) =>
  Layer.effectDiscard(
    Effect.flatMap(makeEraseExpired(mayErase), (eraseExpired) =>
      eraseExpired.pipe(
        Effect.tap((erased) =>
          erased === 0 ? Effect.void : Effect.logInfo(`Erased ${erased} personal documents whose retention period is over`)
        ),
        Effect.tapErrorTag("StoreUnavailable", (error) =>
          Effect.logWarning("Expired personal data could not be erased; retrying in an hour", error)
        ),
        (erasure) => Worker.loop("Erasure of expired personal data", erasure, { schedule: Schedule.spaced(every) })
      )
    )
  )

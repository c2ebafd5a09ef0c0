/** Counts calls in the rate windows (minutes) of their callers, and reads the callers' meters (SQL function vatproof.count_calls). */
import { Effect, Exit, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { Caller } from "#domain/callers/Caller.ts"
import { PreconditionFailed } from "#domain/callers/Metering.ts"
import { minuteBucket, rateWindow } from "#domain/callers/RateLimiter.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { BatchTotals } from "#events/log/store/BatchTotals.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import { elementType, sqlArray } from "#events/log/database/SqlArray.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"
/** Maximum attempts to count the calls of one statement. Each further attempt omits the callers whose cached identity is outdated. */
const maxAttempts = 3

/** The result row. If a key or plan has changed since a caller was cached, nothing is counted, and all columns but `epoch` are null. */
const Counted = Schema.Struct({
  epoch: Schema.BigInt,
  used: Schema.NullOr(Schema.Array(Schema.BigInt)),
  taken: Schema.NullOr(Schema.Array(Schema.BigInt)),
  ends_in_ms: Schema.NullOr(Schema.Array(Schema.BigInt))
})

type Count = Exit.Exit<Standing, PreconditionFailed | StoreUnavailable>

/**
 * Creates a function that counts a call and returns the caller's usage and rate window. Fails with PreconditionFailed if the cached
 * caller is outdated. All waiting calls share one statement.
 */
export const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const count = SqlSchema.findOne({
    Request: Schema.Struct({ epochs: Schema.Array(Schema.BigInt), meters: Schema.Array(Schema.String), minutes: Minutes }),
    Result: Counted,
    execute: ({ epochs, meters, minutes }) =>
      sql`SELECT epoch, used, taken, ends_in_ms FROM vatproof.count_calls(${logId}::smallint, ${sqlArray(epochs, elementType.int8)},
        ${sqlArray(meters, elementType.text)}, ${minutes.nameColumn}, ${minutes.addedColumn})`
  })

  const countAll = Effect.fnUntraced(function* (
    callers: ReadonlyArray<Caller>,
    attempts: number
  ): Effect.fn.Return<ReadonlyArray<Count>, StoreUnavailable> {
    const { calls, minutes } = numbered(callers)
    const epochs = callers.flatMap((caller) => (caller._tag === "Key" ? [BigInt(caller.epoch)] : []))
    const request = { epochs, meters: callers.map(({ meter }) => meter), minutes }
    const { ends_in_ms, epoch, taken, used } = yield* count(request).pipe(QueryPolicy.withRetryForMany(retryFor))
    if (used === null || taken === null || ends_in_ms === null) {
      const isCurrent = (caller: Caller) => attempts > 1 && (caller._tag === "Anonymous" || BigInt(caller.epoch) === epoch)
      const current = callers.filter(isCurrent)
      const counts = current.length === 0 ? [] : yield* countAll(current, attempts - 1)
      const rest = counts.values()
      return callers.map((caller) => (isCurrent(caller) ? (rest.next().value ?? outOfDate) : outOfDate))
    }
    return callers.map(({ limit, perMinute }, index) => {
      const { after, minute } = calls[index] ?? { after: 0, minute: 0 }
      const window = rateWindow(perMinute, Number(taken[minute - 1]) - after, Number(ends_in_ms[minute - 1]))
      return Exit.succeed({ usage: { used: Number(used[index]), limit }, window })
    })
  })

  return yield* GroupCommit.make({
    procedure: "count_calls",
    run: (callers: ReadonlyArray<Caller>) => countAll(callers, maxAttempts)
  })
})

const Minutes = Schema.declare((value: unknown): value is BatchTotals => value instanceof BatchTotals)

const outOfDate = Exit.fail(new PreconditionFailed({ outdated: "identity" }))

/**
 * Returns the rate windows of all calls. For each call, also returns the index of its window, and the number of later calls in the
 * same window.
 */
const numbered = (callers: ReadonlyArray<Caller>) => {
  const minutes = new BatchTotals()
  // Sorts the rate windows by name. All statements lock the windows in this order, which prevents deadlocks.
  for (const bucket of [...new Set(callers.map(minuteBucket))].toSorted()) minutes.add(bucket, 0)
  const counted = callers.map((caller) => {
    const minute = minutes.add(minuteBucket(caller), 1)
    return { minute, nth: minutes.addedTo(minute) }
  })
  return { minutes, calls: counted.map(({ minute, nth }) => ({ minute, after: minutes.addedTo(minute) - nth })) }
}

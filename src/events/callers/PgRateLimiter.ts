/** Enforces rate limits in Postgres, across all replicas. (The RateLimiter of effect supports only memory and Redis.) */
import { Duration, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { elementType, sqlArray } from "#events/database/SqlArray.ts"
import * as QueryPolicy from "#events/database/QueryPolicy.ts"

const retryFor = "3 seconds"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const findSlots = SqlSchema.findOne({
    Request: Schema.Struct({
      buckets: Schema.Array(Schema.String),
      limit: Schema.Int,
      windowMs: Schema.Int,
      look: Schema.Boolean
    }),
    Result: Schema.Struct({ granted: Schema.Boolean, free_in_ms: Schema.BigInt }),
    execute: ({ buckets, limit, look, windowMs }) => sql`SELECT granted, free_in_ms
      FROM vatproof.acquire_slots(${sqlArray(buckets, elementType.text)}, ${limit}, ${BigInt(windowMs)}, ${look})`
  })

  const slots = (look: boolean) =>
    Effect.fnUntraced(function* (buckets: ReadonlyArray<string>, limit: number, window: Duration.Input) {
      const windowMs = Duration.toMillis(Duration.fromInputUnsafe(window))
      const { free_in_ms, granted } = yield* findSlots({ buckets, limit, windowMs, look }).pipe(QueryPolicy.withRetry(retryFor))
      return { granted, retryAfterSeconds: wholeSeconds(Number(free_in_ms)) }
    })

  const findLease = SqlSchema.findOne({
    Request: Schema.Struct({ bucket: Schema.String, holder: Schema.String, ms: Schema.Int }),
    Result: Schema.Struct({ granted: Schema.Boolean }),
    execute: ({ bucket, holder, ms }) => sql`SELECT vatproof.acquire_lease(${bucket}, ${holder}::uuid, ${BigInt(ms)}) AS granted`
  })
  const acquireLease = (bucket: string, holder: string, length: Duration.Input) =>
    findLease({ bucket, holder, ms: Duration.toMillis(Duration.fromInputUnsafe(length)) }).pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.map(({ granted }) => granted)
    )
  const releaseLease = (bucket: string, holder: string) =>
    sql`DELETE FROM vatproof.rate_windows WHERE bucket = ${bucket} AND holder = ${holder}::uuid`.pipe(
      QueryPolicy.withRetry(retryFor),
      Effect.asVoid
    )

  const findSpending = SqlSchema.findOne({
    Request: Schema.Struct({ budget: Schema.String, calls: Schema.Int, limit: Schema.Int }),
    Result: Schema.Struct({ granted: Schema.Boolean, spent: Schema.BigInt, ends_in_ms: Schema.BigInt }),
    execute: ({ budget, calls, limit }) =>
      sql`SELECT granted, spent, ends_in_ms FROM vatproof.spend_budget(${budget}, ${calls}, ${BigInt(limit)})`
  })
  const spendBudget = Effect.fnUntraced(function* (budget: string, calls: number, limit: number) {
    const { ends_in_ms, granted, spent } = yield* findSpending({ budget, calls, limit }).pipe(QueryPolicy.withRetry(retryFor))
    return { granted, spent: Number(spent), endsIn: Duration.millis(Number(ends_in_ms)) }
  })

  return RateLimiter.of({
    acquireSlots: slots(false),
    checkSlots: slots(true),
    acquireLease,
    releaseLease,
    spendBudget
  })
})

/** Converts milliseconds to whole seconds, rounded up and at least 1, so that a client does not retry too early. */
const wholeSeconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000))

export const layer = Layer.effect(RateLimiter, make)

/** Enforces rate limits in Postgres, across all replicas. (The RateLimiter of effect supports only memory and Redis.) */
import { Duration, Effect, Exit, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { RateLimiter } from "#domain/callers/RateLimiter.ts"
import { elementType, sqlArray, type SqlColumn, sqlColumns } from "#events/log/database/SqlArray.ts"
import * as GroupCommit from "#events/log/store/GroupCommit.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"

const Lease = Schema.Struct({ bucket: Schema.String, holder: Schema.String, ms: Schema.BigInt })
const leaseColumns: ReadonlyArray<SqlColumn<typeof Lease.Type>> = [
  ["bucket", elementType.text],
  ["holder", elementType.uuid],
  ["ms", elementType.int8]
]

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

  const findLeases = SqlSchema.findOne({
    Request: Schema.Array(Lease),
    Result: Schema.Struct({ granted: Schema.Array(Schema.Boolean) }),
    execute: (leases) =>
      sql`SELECT vatproof.acquire_leases(${sql.csv(sqlColumns(leases, leaseColumns).map((column) => sql`${column}`))}) AS granted`
  })
  /** Acquires a lease for `ms`, or releases it if `ms` is 0. All waiting callers share one statement. */
  const hold = yield* GroupCommit.make({
    procedure: "acquire_leases",
    run: (leases: ReadonlyArray<typeof Lease.Type>) =>
      Effect.map(findLeases(leases).pipe(QueryPolicy.withRetryForMany(retryFor)), ({ granted }) => granted.map(Exit.succeed))
  })

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
    acquireLease: (bucket, holder, length) =>
      hold({ bucket, holder, ms: BigInt(Duration.toMillis(Duration.fromInputUnsafe(length))) }),
    releaseLease: (bucket, holder) => Effect.asVoid(hold({ bucket, holder, ms: 0n })),
    spendBudget
  })
})

/** Converts milliseconds to whole seconds, rounded up and at least 1, so that a client does not retry too early. */
const wholeSeconds = (ms: number) => Math.max(1, Math.ceil(ms / 1000))

export const layer = Layer.effect(RateLimiter, make)

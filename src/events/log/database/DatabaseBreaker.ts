/**
 * The circuit breaker of the database, shared by all queries of the process. After 3 s without an answer it opens, and requests
 * fail at once instead of waiting. A probe twice a second detects the recovery.
 */
import { Context, Duration, Effect, Metric, MutableRef, Schedule, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import * as Worker from "#domain/concurrency/Worker.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import * as StoreMetrics from "#events/log/database/StoreMetrics.ts"

/** The breaker opens after this time without an answer. During a shorter restart of the database, requests wait. */
const awayAfterMs = 3_000
const probeInterval = "500 millis"
/**
 * Maximum number of concurrent queries of the process, most of which wait for a connection. More queries could not be answered in
 * time, and their timeouts would keep the CPU busy for minutes.
 */
const maxInFlight = 1_000
/** Timeout of a probe. */
const probeTimeout = "2 seconds"

interface BreakerState {
  readonly answeredAt: number
  /** Start of the oldest query that began after `answeredAt` and then failed or hung; null without such a query. */
  readonly failingSince: number | null
  readonly away: boolean
}

/** Times are milliseconds of the monotonic clock, so that setting the wall clock does not look like an outage. */
export interface DatabaseBreaker {
  readonly isOpen: () => boolean
  /** Returns true if a query failed recently, so that the breaker may open soon. */
  readonly isDoubtful: () => boolean
  /** Limits the queries in flight. A query takes one permit, unless it serves a whole group of callers. */
  readonly querySemaphore: Semaphore.Semaphore
  /** Reports that the database answered a query, with a result or an error. */
  readonly answered: Effect.Effect<void>
  /** Reports that a query which began at `started` could not reach the database. */
  readonly failed: (started: number, why: unknown) => Effect.Effect<void>
}

export const make = (): DatabaseBreaker => {
  const state = MutableRef.make<BreakerState>({ answeredAt: 0, failingSince: null, away: false })

  const answered = Effect.gen(function* () {
    const { away, failingSince } = state.current
    const answeredAt = yield* monotonicMs
    MutableRef.set(state, { answeredAt, failingSince: null, away: false })
    if (!away) return
    yield* Metric.update(StoreMetrics.databaseAvailable, 1)
    const outage = Duration.millis(answeredAt - (failingSince ?? answeredAt))
    yield* Effect.logInfo(`The database is available again after ${Math.round(Duration.toSeconds(outage))} s`)
  })

  const failed = Effect.fnUntraced(function* (started: number, why: unknown) {
    const before = state.current
    // Ignores the failure if the database has answered another query since this query began, because the database is then available.
    if (started < before.answeredAt || before.away) return
    const failingSince = Math.min(before.failingSince ?? started, started)
    const away = (yield* monotonicMs) - failingSince >= awayAfterMs
    MutableRef.set(state, { ...before, failingSince, away })
    if (!away) return
    yield* Metric.update(StoreMetrics.databaseAvailable, 0)
    yield* Effect.logError("The database is unavailable; requests fail immediately until it responds", why)
  })

  return {
    isOpen: () => state.current.away,
    isDoubtful: () => state.current.failingSince !== null,
    querySemaphore: Semaphore.makeUnsafe(maxInFlight),
    answered: Effect.suspend(() => (state.current.failingSince === null ? noteAnswer(state) : answered)),
    failed
  }
}

const noteAnswer = (state: MutableRef.MutableRef<BreakerState>) =>
  Effect.map(monotonicMs, (answeredAt) => void MutableRef.set(state, { ...state.current, answeredAt }))

/** The breaker that all queries of this process share, because a process uses only one database. */
export const DatabaseBreaker = Context.Reference<DatabaseBreaker>("vatproof/events/log/database/DatabaseBreaker", {
  defaultValue: make
})

/** Probes the database while queries fail, for the lifetime of the scope. */
export const watch = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const health = yield* DatabaseBreaker
  yield* Metric.update(StoreMetrics.databaseAvailable, 1)
  const probe = Effect.gen(function* () {
    if (!health.isDoubtful()) return
    const started = yield* monotonicMs
    yield* sql`SELECT 1 AS found`.pipe(
      Effect.timeout(probeTimeout),
      Effect.matchEffect({ onFailure: (error) => health.failed(started, error), onSuccess: () => health.answered })
    )
  })
  yield* Worker.loop("The probe of the database", probe, { schedule: Schedule.spaced(probeInterval) })
})

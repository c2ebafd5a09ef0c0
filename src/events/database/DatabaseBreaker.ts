/**
 * What all queries of this process know together about the database: whether it answers. One that has been silent for a while is known
 * to be away, and then no request waits to find that out for itself; a look twice a second notices when it is back.
 */
import { Clock, Context, Duration, Effect, Metric, MutableRef, Schedule, Semaphore } from "effect"
import { SqlClient } from "effect/sql"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import * as StoreMetrics from "#events/database/StoreMetrics.ts"

/** Without an answer for this long it is away. A shorter restart is waited for. */
const awayAfterMs = 3_000
const lookEvery = "500 millis"
/**
 * Queries of the process that may be under way, most of them waiting for a connection. More would not be answered in time, and to send them
 * away one after the other when their time is over would take a processor for minutes.
 */
const maxUnderWay = 1_000
/** A look that takes longer than this has found nothing. */
const lookPatience = "2 seconds"

/** Milliseconds since some moment that stays the same for this process. */
export const monotonicMs = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

interface Known {
  readonly answeredAt: number
  /** Start of the oldest query that failed or hung since then. */
  readonly failingSince: number | null
  readonly away: boolean
}

/** Times are milliseconds of the monotonic clock: a wall clock that is set must not look like an outage. */
export interface DatabaseBreaker {
  readonly isOpen: () => boolean
  /** Whether it failed lately and may be away soon. */
  readonly isDoubtful: () => boolean
  /** One for each query that may be under way. */
  readonly querySemaphore: Semaphore.Semaphore
  /** A query was answered, be it with a refusal. */
  readonly answered: Effect.Effect<void>
  /** A query that began at `started` found nobody. */
  readonly failed: (started: number, why: unknown) => Effect.Effect<void>
}

const make = (): DatabaseBreaker => {
  const known = MutableRef.make<Known>({ answeredAt: 0, failingSince: null, away: false })

  const answered = Effect.gen(function* () {
    const { away, failingSince } = known.current
    const answeredAt = yield* monotonicMs
    MutableRef.set(known, { answeredAt, failingSince: null, away: false })
    if (!away) return
    yield* Metric.update(StoreMetrics.databaseAvailable, 1)
    const gone = Duration.millis(answeredAt - (failingSince ?? answeredAt))
    yield* Effect.logInfo(`The database answers again, after ${Math.round(Duration.toSeconds(gone))} s`)
  })

  const failed = Effect.fnUntraced(function* (started: number, why: unknown) {
    const before = known.current
    // Others were answered since it began: the database is not away, whatever became of this one.
    if (started < before.answeredAt || before.away) return
    const failingSince = Math.min(before.failingSince ?? started, started)
    const away = (yield* monotonicMs) - failingSince >= awayAfterMs
    MutableRef.set(known, { ...before, failingSince, away })
    if (!away) return
    yield* Metric.update(StoreMetrics.databaseAvailable, 0)
    yield* Effect.logError("The database is away: requests are refused at once until it answers", why)
  })

  return {
    isOpen: () => known.current.away,
    isDoubtful: () => known.current.failingSince !== null,
    querySemaphore: Semaphore.makeUnsafe(maxUnderWay),
    answered: Effect.suspend(() => (known.current.failingSince === null ? noteAnswer(known) : answered)),
    failed
  }
}

const noteAnswer = (known: MutableRef.MutableRef<Known>) =>
  Effect.map(monotonicMs, (answeredAt) => void MutableRef.set(known, { ...known.current, answeredAt }))

/** One for the process, as there is one database for it. */
export const DatabaseBreaker = Context.Reference<DatabaseBreaker>("vatproof/events/database/DatabaseBreaker", {
  defaultValue: make
})

/** Looks for a database that is away, for as long as its scope. */
export const watch = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const health = yield* DatabaseBreaker
  yield* Metric.update(StoreMetrics.databaseAvailable, 1)
  const look = Effect.gen(function* () {
    if (!health.isDoubtful()) return
    const started = yield* monotonicMs
    yield* sql`SELECT 1 AS found`.pipe(
      Effect.timeout(lookPatience),
      Effect.matchEffect({ onFailure: (error) => health.failed(started, error), onSuccess: () => health.answered })
    )
  })
  const turn = logDefects("The look for the database stumbled; it looks again")(look)
  yield* Effect.forkScoped(Effect.repeat(turn, Schedule.spaced(lookEvery)))
})

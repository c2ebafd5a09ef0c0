/** A primary and a synchronous standby: every acknowledged write is on both. */
import { Effect, MutableRef, Redacted } from "effect"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as TcpProxy from "#test/faults/TcpProxy.ts"

/** The longest batch: requests that queue behind a cancelled one are not sent. */
const refusalMs = 6_500

/** Commits wait for the standby from now on. */
const waitForStandby = (primary: PostgresServer.PostgresServer) =>
  primary.program("psql", "-q", "-c", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "-c", "SELECT pg_reload_conf()")

const pair = Effect.gen(function* () {
  const primary = yield* PostgresServer.make({ settings: ["wal_level=replica", "max_wal_senders=5"] })
  const standby = yield* PostgresServer.standbyOf(primary)
  yield* waitForStandby(primary)
  return { primary, standby }
})

/** The primary dies during the load, with all data that only it had, and the standby replaces it at the same address. */
export const failover = Effect.gen(function* () {
  const { primary, standby } = yield* pair
  const current = MutableRef.make<PostgresServer.PostgresServer | null>(primary)
  const address = yield* TcpProxy.make(() => current.current?.port ?? null)
  const url = Redacted.make(`postgresql://postgres@127.0.0.1:${address.port}/postgres`)
  const replicas = [yield* Scenario.replica(url), yield* Scenario.replica(url)] as const
  const report = yield* Scenario.run({
    name: "failover",
    baseUrl: replicas[0].baseUrl,
    key: yield* replicas[0].newKey,
    database: () => standby.url,
    perSecond: 200,
    fault: Effect.gen(function* () {
      yield* primary.stop("immediate")
      MutableRef.set(current, null)
      yield* address.cut
      // The time that a watchdog takes to decide.
      yield* Effect.delay(standby.promote, "3 seconds")
      MutableRef.set(current, standby)
      return []
    })
  })
  return Scenario.withClaims(
    report,
    Scenario.onlyRefused(report),
    Scenario.refusedWithin(report, refusalMs),
    Scenario.felt(report)
  )
})

/** The standby is down for 20 s. No write can be acknowledged: requests are refused and none hangs. */
export const standbyAway = Effect.gen(function* () {
  const { primary, standby } = yield* pair
  const replica = yield* Scenario.replica(primary.url)
  const report = yield* Scenario.run({
    name: "alone",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => primary.url,
    fault: standby.stop("immediate").pipe(Effect.andThen(Effect.delay(standby.start, "20 seconds")), Effect.as([]))
  })
  const answered = report.outcomes.filter(({ durationMs, phase, startedMs, status }) => {
    const faultBegan = Math.min(
      ...report.outcomes.filter((outcome) => outcome.phase === "fault").map((outcome) => outcome.startedMs)
    )
    return (
      phase === "fault" &&
      status === 200 &&
      startedMs + durationMs > faultBegan + 1_000 &&
      startedMs + durationMs < faultBegan + 18_000
    )
  })
  return Scenario.withClaims(
    report,
    Scenario.onlyRefused(report),
    Scenario.refusedWithin(report, refusalMs),
    Scenario.felt(report),
    {
      what: `nothing is acknowledged while the standby is away (${answered.length} were)`,
      holds: answered.length === 0
    }
  )
})

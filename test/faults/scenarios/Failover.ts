/** A primary and its synchronous standby. Both must have every acknowledged write. */
import { Effect, MutableRef, Redacted } from "effect"
import * as Load from "#test/faults/Load.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as TcpProxy from "#test/faults/TcpProxy.ts"

/** Maximum duration of a rejected request in milliseconds. Most of it is the timeout of 5 s of an append that hangs. */
const rejectionMs = 6_500

/** Makes commits wait for the standby. */
const waitForStandby = (primary: PostgresServer.PostgresServer) =>
  primary.program("psql", "-q", "-c", "ALTER SYSTEM SET synchronous_standby_names = 'standby'", "-c", "SELECT pg_reload_conf()")

const pair = Effect.gen(function* () {
  const primary = yield* PostgresServer.make({ settings: ["wal_level=replica", "max_wal_senders=5"] })
  const standby = yield* PostgresServer.standbyOf(primary)
  yield* waitForStandby(primary)
  return { primary, standby }
})

/** The primary and its data are lost, and the standby takes over its address. */
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
      yield* address.reset
      // The delay stands for a watchdog, which takes about 3 s to detect the failure.
      yield* Effect.delay(standby.promote, "3 seconds")
      MutableRef.set(current, standby)
      return []
    })
  })
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report)
  )
})

/** The standby is down for 20 s. The primary cannot acknowledge writes meanwhile, so the service must reject requests and none may hang. */
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
      Load.isSuccess({ status }) &&
      startedMs + durationMs > faultBegan + 1_000 &&
      startedMs + durationMs < faultBegan + 18_000
    )
  })
  return Scenario.withClaims(
    report,
    Scenario.succeededOrRejected(report),
    Scenario.rejectedWithin(report, rejectionMs),
    Scenario.hadEffect(report),
    {
      statement: `no request is acknowledged while the standby is down (${answered.length} were)`,
      holds: answered.length === 0
    }
  )
})

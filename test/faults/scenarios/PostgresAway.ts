/** Postgres crashes, freezes or restarts under load. */
import { Effect } from "effect"
import type { ProgramFailed } from "#infra/embedded-postgres/Program.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"

/** Maximum duration of a rejected request in milliseconds: the timeouts of two queries, one of which detects the outage. */
const rejectionMs = 6_000

const scenario = (
  name: string,
  fault: (server: PostgresServer.PostgresServer) => Effect.Effect<ReadonlyArray<string>, ProgramFailed>,
  ...more: ReadonlyArray<(report: Scenario.Report) => Scenario.Claim>
) =>
  Effect.gen(function* () {
    const server = yield* PostgresServer.make()
    const replica = yield* Scenario.replica(server.url)
    const report = yield* Scenario.run({
      name,
      baseUrl: replica.baseUrl,
      key: yield* replica.newKey,
      database: () => server.url,
      fault: fault(server)
    })
    const claims = [
      Scenario.succeededOrRejected(report),
      Scenario.rejectedWithin(report, rejectionMs),
      ...more.map((claim) => claim(report))
    ]
    return Scenario.withClaims(report, ...claims)
  })

/** Postgres crashes and is down for 20 s. */
export const away = scenario(
  "away",
  (server) => server.stop("immediate").pipe(Effect.andThen(Effect.delay(server.start, "20 seconds")), Effect.as([])),
  Scenario.hadEffect
)

/** Postgres hangs for 20 s with open connections, like a frozen machine or a network that drops packets. */
export const frozen = scenario(
  "frozen",
  (server) => server.freeze.pipe(Effect.andThen(Effect.delay(server.thaw, "20 seconds")), Effect.as([])),
  Scenario.hadEffect
)

/** Postgres restarts cleanly, as for a minor upgrade. */
export const restarted = scenario("restarted", (server) => server.stop("fast").pipe(Effect.andThen(server.start), Effect.as([])))

/**
 * Runs fault scenarios. A scenario injects one fault into real processes, most under load, and checks what the service must guarantee:
 *
 *     npm run faults                              all scenarios
 *     npm run faults -- postgres-away failover    two scenarios
 *
 * docs/operations/faults.md lists the requirements and the last results of each scenario.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Console, Effect, Layer, Record, References, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { SecureRandom } from "effect/crypto"
import * as Sandbox from "#test/support/Sandbox.ts"
import { isSuccess, type Outcome } from "#test/faults/Load.ts"
import { ScenarioSkipped } from "#test/faults/Needs.ts"
import type { Report, Trial } from "#test/faults/Scenario.ts"
import * as Attacks from "#test/faults/scenarios/Attacks.ts"
import * as Bodies from "#test/faults/scenarios/Bodies.ts"
import * as DatabaseStrained from "#test/faults/scenarios/DatabaseStrained.ts"
import * as Erasure from "#test/faults/scenarios/Erasure.ts"
import * as Failover from "#test/faults/scenarios/Failover.ts"
import * as Pending from "#test/faults/scenarios/Pending.ts"
import * as PostgresAway from "#test/faults/scenarios/PostgresAway.ts"
import * as Recovery from "#test/faults/scenarios/Recovery.ts"
import * as ReplicaLeaves from "#test/faults/scenarios/ReplicaLeaves.ts"
import * as WorkerLeaves from "#test/faults/scenarios/WorkerLeaves.ts"

const scenarios = {
  "postgres-away": PostgresAway.away,
  "postgres-frozen": PostgresAway.frozen,
  "postgres-restarted": PostgresAway.restarted,
  "disk-full": DatabaseStrained.diskFull,
  "disk-slow": DatabaseStrained.diskSlow,
  "connections-taken": DatabaseStrained.connectionsTaken,
  "connections-ended": DatabaseStrained.connectionsEnded,
  "read-only": DatabaseStrained.readOnly,
  "pool-exhausted": DatabaseStrained.poolExhausted,
  failover: Failover.failover,
  "standby-away": Failover.standbyAway,
  "rolling-restart": ReplicaLeaves.rolling,
  "replica-killed": ReplicaLeaves.killed,
  "workers-renewed": WorkerLeaves.renewed,
  "worker-killed": WorkerLeaves.killed,
  recovery: Recovery.recovery,
  pending: Pending.pending,
  "erasure-killed": Erasure.killed,
  "account-hijack": Attacks.hijack,
  "login-lockout": Attacks.lockout,
  "login-flood": Attacks.flood,
  "receipt-link": Attacks.receiptLink,
  "batch-flood": Attacks.batchFlood,
  "hostile-bodies": Bodies.bodies
}

const names = Record.keys(scenarios)

const run = Effect.fnUntraced(function* (name: keyof typeof scenarios) {
  const result: Report | Trial = yield* scenarios[name]
  return result
})

/** Timeout of a scenario. */
const timeout = "4 minutes"

class ScenariosFailed extends Schema.TaggedError<ScenariosFailed>()("ScenariosFailed", { message: Schema.String }) {}

const faults = Command.make(
  "faults",
  { chosen: Argument.Literals("scenario", names).pipe(Argument.variadic()) },
  Effect.fnUntraced(function* ({ chosen }) {
    const failed: Array<string> = []
    const skipped: Array<string> = []
    for (const name of chosen.length === 0 ? names : chosen) {
      yield* Console.log(`\n${name}`)
      const report = yield* run(name).pipe(
        Effect.provide(environment, { local: true }),
        Effect.scoped,
        Effect.timeout(timeout),
        Effect.catchIf((error) => error instanceof ScenarioSkipped, Effect.succeed)
      )
      if (!(report instanceof ScenarioSkipped)) {
        yield* Console.log(textOf(report))
        if (report.claims.some(({ holds }) => !holds)) failed.push(name)
      } else {
        yield* Console.log(`  skipped: ${report.message}`)
        skipped.push(name)
      }
    }
    if (skipped.length > 0) yield* Console.log(`\nSkipped: ${skipped.join(", ")}`)
    if (failed.length > 0) return yield* new ScenariosFailed({ message: `Failed scenarios: ${failed.join(", ")}` })
  })
)

const environment = Layer.mergeAll(
  Sandbox.layer({ host: "127.0.0.1", port: 0 }),
  NodeHttpClient.layerUndici,
  SecureRandom.layerWebCrypto,
  NodeCrypto.layerSecureRandom
)

const phases = ["before", "fault", "recovering", "after"]

const textOf = (result: Report | Trial) =>
  [
    ...("outcomes" in result ? loadOf(result) : []),
    ...result.notes.map((note) => `  ${note}`),
    ...result.claims.map(({ holds, statement }) => `  ${holds ? "✓" : "✗"} ${statement}`)
  ].join("\n")

const loadOf = ({ count, outcomes }: Report) => [
  row("phase", "requests", "2xx", "503", "other", "p50 ms", "p99 ms", "max ms"),
  ...phases.map((phase) =>
    phaseRow(
      phase,
      outcomes.filter((outcome) => outcome.phase === phase)
    )
  ),
  `  ${count.unacknowledged} requests have an event but no acknowledgement; ${count.events} events in total`
]

const phaseRow = (phase: string, outcomes: ReadonlyArray<Outcome>) => {
  const countOf = (matches: (status: number | null) => boolean) => outcomes.filter(({ status }) => matches(status)).length
  const durations = outcomes.map(({ durationMs }) => durationMs).toSorted((a, b) => a - b)
  const quantile = (share: number) =>
    String(durations[Math.min(durations.length - 1, Math.floor(durations.length * share))] ?? "-")
  return row(
    phase,
    String(outcomes.length),
    String(countOf((status) => isSuccess({ status }))),
    String(countOf((status) => status === 503)),
    String(countOf((status) => !isSuccess({ status }) && status !== 503)),
    quantile(0.5),
    quantile(0.99),
    quantile(1)
  )
}

const row = (first: string, ...cells: ReadonlyArray<string>) =>
  `  ${first.padEnd(12)}${cells.map((cell) => cell.padStart(10)).join("")}`

const program = Command.run(faults, { version: "1" }).pipe(
  Effect.provide(NodeServices.layer),
  Effect.provideService(References.MinimumLogLevel, "Warn")
)

NodeRuntime.runMain(program)

/**
 * Measures the performance targets on this machine:
 *
 *     npm run bench                                   the short sections: about twenty-five minutes
 *     npm run bench -- --full                         all sections, on a large database too
 *     npm run bench -- --only throughput --rounds 3   one section
 *
 * BENCHMARKS.md describes the method and lists the figures of the last full run.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Cause,
  Config,
  Console,
  DateTime,
  Effect,
  FileSystem,
  Layer,
  Option,
  Predicate,
  Record,
  References,
  Schema
} from "effect"
import { CliError, Command, Flag } from "effect/cli"
import { SecureRandom } from "effect/crypto"
import { resolve } from "node:path"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Checkout from "#test/benchmarks/Checkout.ts"
import * as Machine from "#test/benchmarks/Machine.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as Audit from "#test/benchmarks/sections/Audit.ts"
import * as Flat from "#test/benchmarks/sections/Flat.ts"
import * as Fresh from "#test/benchmarks/sections/Fresh.ts"
import * as Latency from "#test/benchmarks/sections/Latency.ts"
import * as Light from "#test/benchmarks/sections/Light.ts"
import * as LookUps from "#test/benchmarks/sections/LookUps.ts"
import * as Mix from "#test/benchmarks/sections/Mix.ts"
import * as Notary from "#test/benchmarks/sections/Notary.ts"
import * as Pending from "#test/benchmarks/sections/Pending.ts"
import * as Pipelining from "#test/benchmarks/sections/Pipelining.ts"
import * as Projection from "#test/benchmarks/sections/Projection.ts"
import * as Start from "#test/benchmarks/sections/Start.ts"
import * as Receipts from "#test/benchmarks/sections/Receipts.ts"
import * as Store from "#test/benchmarks/sections/Store.ts"
import * as Submissions from "#test/benchmarks/sections/Submissions.ts"
import * as Throughput from "#test/benchmarks/sections/Throughput.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"

const sections = {
  mix: Effect.scoped(Mix.run),
  throughput: Effect.scoped(Throughput.run),
  latency: Effect.scoped(Latency.run),
  light: Effect.scoped(Light.run),
  fresh: Effect.scoped(Fresh.run),
  pending: Effect.scoped(Pending.run),
  submissions: Effect.scoped(Submissions.run),
  pipelining: Effect.scoped(Pipelining.run),
  store: Effect.scoped(Store.run),
  projection: Effect.scoped(Projection.run),
  notary: Effect.scoped(Notary.run),
  lookups: Effect.scoped(LookUps.run),
  start: Effect.scoped(Start.run),
  flat: Effect.scoped(Flat.run),
  audit: Effect.scoped(Audit.run),
  receipts: Effect.scoped(Receipts.run)
}

const names = Record.keys(sections)
type Name = (typeof names)[number]

/** Slow sections. They run only with `--full` or if `--only` names them. */
const slow: ReadonlySet<Name> = new Set(["flat", "audit", "receipts"])

const parseNames = (text: string): Option.Option<ReadonlyArray<Name>> => {
  const parts = text.split(",").map((name) => name.trim())
  const chosen = names.filter((name) => parts.includes(name))
  return chosen.length === parts.length ? Option.some(chosen) : Option.none()
}

class LimitsMissed extends Schema.TaggedError<LimitsMissed>()("LimitsMissed", { message: Schema.String }) {}

const positive = (flag: Flag.Flag<number>, meaning: string) =>
  flag.pipe(
    Flag.filter(
      (value) => value > 0,
      (value) => `Expected more than 0, got ${value}`
    ),
    Flag.optional,
    Flag.withDescription(meaning)
  )

/** `--write` replaces everything below this heading of the page. */
const page = "BENCHMARKS.md"
const heading = "## The last run\n"

const flags = {
  full: Flag.Boolean("full").pipe(
    Flag.withDefault(false),
    Flag.withDescription("All sections, with a large database and longer runs: about an hour")
  ),
  only: Flag.String("only").pipe(
    Flag.filterMap(parseNames, (text) => `Expected some of ${names.join(",")}, got ${text}`),
    Flag.optional,
    Flag.withDescription(`Sections, separated by commas: ${names.join(", ")}`)
  ),
  rounds: positive(Flag.Int("rounds"), "Runs per figure; the figure is their median. Default: 5"),
  seconds: positive(Flag.Finite("seconds"), "Seconds of one run. Default: 1, with --full 10"),
  connections: positive(Flag.Int("connections"), "Connections of the load generator. Default: 512, for the mix 128"),
  freshSeconds: positive(Flag.Int("fresh-seconds"), "Seconds of load on a new database. Default: 20"),
  events: positive(Flag.Int("events"), "Events in each generated log. Default: 250 thousand, with --full 10 million"),
  minutes: positive(Flag.Finite("minutes"), "Minutes of load during which memory is sampled. Default: 5"),
  serviceRoot: Flag.Directory("service-root").pipe(
    Flag.optional,
    Flag.withDescription("Another checkout of the service; throughput, mix and latency compare it with this checkout")
  ),
  nodeFlags: Flag.String("node-flags").pipe(
    Flag.optional,
    Flag.withDescription(
      'Node flags of the compared service, such as --node-flags="--max-semi-space-size=8". Default of --service-root: this checkout'
    )
  ),
  databaseUrl: Flag.Redacted("database-url").pipe(
    Flag.optional,
    Flag.withDescription(
      "URL of a Postgres, with a role that may create databases. Default: TEST_DATABASE_URL, else an embedded Postgres"
    )
  ),
  write: Flag.Boolean("write").pipe(
    Flag.withDefault(false),
    Flag.withDescription(`Replace the figures of the last run in ${page}`)
  ),
  json: Flag.Path("json").pipe(Flag.withDefault("bench.json"), Flag.withDescription("File for the figures as JSON"))
}

/** Returns the build of the service to compare with this checkout. Returns null without `--service-root` and `--node-flags`. */
const otherBuildOf = (root: Option.Option<string>, nodeFlags: Option.Option<string>): Checkout.Checkout | null =>
  Option.isNone(root) && Option.isNone(nodeFlags)
    ? null
    : {
        root: resolve(Option.getOrElse(root, () => Checkout.present.root)),
        nodeFlags: Option.getOrElse(nodeFlags, () => "")
          .split(/\s+/u)
          .filter((flag) => flag !== "")
      }

const databaseUrlFromEnv = Config.option(Config.Redacted("TEST_DATABASE_URL"))

const bench = Command.make(
  "bench",
  flags,
  Effect.fnUntraced(function* ({ full, ...chosen }) {
    const set = (value: Option.Option<number>, standard: number) => Option.getOrElse(value, () => standard)
    const settings = {
      full,
      rounds: set(chosen.rounds, 5),
      seconds: set(chosen.seconds, full ? 10 : 1),
      connections: set(chosen.connections, 512),
      mixConnections: set(chosen.connections, 128),
      freshSeconds: set(chosen.freshSeconds, 20),
      events: set(chosen.events, full ? 10_000_000 : 250_000),
      minutes: set(chosen.minutes, 5),
      other: otherBuildOf(chosen.serviceRoot, chosen.nodeFlags)
    }
    const wanted = Option.getOrElse(chosen.only, () => names.filter((name) => full || !slow.has(name)))
    const environment = PostgresServer.layer(Option.firstSomeOf([chosen.databaseUrl, yield* databaseUrlFromEnv])).pipe(
      Layer.merge(Layer.succeed(BenchOptions, settings))
    )
    const fs = yield* FileSystem.FileSystem
    // Called after each section, so that a later failure does not lose its figures.
    const save = (soFar: Report.Report) => fs.writeFileString(chosen.json, `${JSON.stringify({ ...soFar, settings }, null, 2)}\n`)
    const report = yield* Effect.provide(measure(wanted, save), environment)
    yield* Console.log(`The figures are in ${chosen.json}.`)
    if (chosen.write) {
      const [before = ""] = (yield* fs.readFileString(page)).split(heading, 1)
      yield* fs.writeFileString(page, `${before}${heading}\n${Report.markdown(report)}\n`)
    }
    const missed = Report.missed(report)
    if (missed.length > 0) return yield* new LimitsMissed({ message: `These figures missed their limits: ${missed.join("; ")}` })
  })
)

const measure = Effect.fnUntraced(function* <E, R>(
  wanted: ReadonlyArray<Name>,
  save: (soFar: Report.Report) => Effect.Effect<void, E, R>
) {
  const machine = yield* Machine.describe
  const at = DateTime.formatIso(yield* DateTime.now)
  yield* Console.log([at, ...machine, ""].join("\n"))
  const reports: Array<Report.SectionReport> = []
  for (const name of wanted) {
    const report = yield* sections[name]
    yield* Console.log(`${Report.sectionText(report)}\n`)
    reports.push(report)
    yield* save({ at, machine, sections: reports })
  }
  return { at, machine, sections: reports } satisfies Report.Report
})

const platform = Layer.mergeAll(
  Sandbox.layer({ host: "127.0.0.1", port: 0 }),
  NodeHttpClient.layerUndici,
  SecureRandom.layerWebCrypto,
  NodeCrypto.layer,
  NodeCrypto.layerSecureRandom
)

const program = Command.run(bench, { version: "1" }).pipe(
  Effect.provide(platform),
  Effect.provide(NodeServices.layer),
  Effect.provideService(References.MinimumLogLevel, "Warn")
)

/** Prints the message of an expected error, and the trace of a defect. */
const report = (cause: Cause.Cause<unknown>) =>
  Option.match(Option.filter(Cause.findErrorOption(cause), Predicate.isError), {
    onNone: () => (Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("The benchmark failed", cause)),
    onSome: (error) => (CliError.isCliError(error) ? Effect.void : Console.error(error.message))
  })

NodeRuntime.runMain(Effect.tapCause(program, report), { disableErrorReporting: true })

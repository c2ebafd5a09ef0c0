/** Durations of audits: verification of a log, its export, verification of the export, and single proofs. */
import { Array as Arr, Clock, Effect, FileSystem, Layer, Option } from "effect"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import * as ExportAudit from "#events/log/export/ExportAudit.ts"
import * as LogExport from "#events/log/export/LogExport.ts"
import * as EventProofs from "#events/log/notary/EventProofs.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { keys, notaryLayer, signUpTo } from "#test/benchmarks/sections/Notary.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"

/** Maximum number of generated events. More events do not make the figures more stable. */
const eventsMax = 1_000_000
const proofs = 200

interface Step {
  readonly name: string
  readonly seconds: number
  readonly findings: number
  readonly memoryMb: number
}

const timed = Effect.fnUntraced(function* <A, E, R>(
  name: string,
  effect: Effect.Effect<A, E, R>,
  findingsOf: (result: A) => number
) {
  const before = ProcessorTime.read({})
  const findings = findingsOf(yield* effect)
  const { seconds } = ProcessorTime.since(before)
  return { name, seconds, findings, memoryMb: process.memoryUsage().rss / 1e6 } satisfies Step
})

/** Creates inclusion proofs of events spread over the log. Returns the durations in milliseconds. */
const prove = Effect.fnUntraced(function* (events: number) {
  const store = yield* EventStore
  const { newest, prove } = yield* EventProofs.make
  return yield* Effect.forEach(
    Arr.makeBy(proofs, (index) => Math.floor((events / proofs) * index)),
    Effect.fnUntraced(function* (position) {
      const [event] = yield* store.read(position, 1)
      const before = yield* Clock.currentTimeNanos
      const checkpoint = Option.getOrThrow(yield* newest)
      if (event !== undefined) yield* prove(event, checkpoint)
      return Number((yield* Clock.currentTimeNanos) - before) / 1e6
    })
  )
})

const progress = () => Effect.void

export const run = Effect.gen(function* () {
  const { events: wanted } = yield* BenchOptions
  const fs = yield* FileSystem.FileSystem
  const events = Math.min(wanted, eventsMax)
  const url = yield* LogDatabase.make("audit")
  const directory = `${yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-bench-" })}/export`
  const options = { directory, from: null, to: null, supplier: "", location: "", verifierKeys: [], progress }
  const { steps, times } = yield* Effect.gen(function* () {
    yield* signUpTo(LogDatabase.fill(url, { events, keys: Math.ceil(events / 100), vatIds: Math.ceil(events / 10) }))
    const verify = DatabaseAudit.run({
      verifiers: keys.verifiers,
      kept: [],
      schema: yield* SchemaComparison.load,
      isFast: false,
      progress
    })
    const verifyExport = ExportAudit.run({ directory, kept: [], verifiers: keys.verifiers, progress })
    const timings = [
      yield* timed("log verified", verify, ({ count }) => count),
      yield* timed("log exported", LogExport.run(options), () => 0),
      yield* timed("export verified", verifyExport, ({ count }) => count)
    ]
    return { steps: timings, times: yield* prove(events) }
  }).pipe(
    Effect.provide(Layer.succeed(LogSigner, { origin: keys.name, keys: Option.some(keys) })),
    Effect.provide(notaryLayer(url), { local: true })
  )
  const report: Report.SectionReport = {
    section: "audit",
    how: `a log of ${events} events, once`,
    figures: [
      ...steps.map(({ name, seconds }) => Report.plain(name, (seconds * 1e6) / events, "µs an event")),
      Report.plain("a proof, p50", Report.median(times), "ms"),
      Report.plain("a proof, maximum", Math.max(...times), "ms"),
      Report.atMost(
        "findings in an intact log",
        steps.reduce((sum, { findings }) => sum + findings, 0),
        "findings",
        0
      )
    ],
    details: [
      Report.details(steps, {
        "": ({ name }) => name,
        seconds: ({ seconds }) => seconds,
        "memory MB": ({ memoryMb }) => memoryMb
      })
    ]
  }
  return report
})

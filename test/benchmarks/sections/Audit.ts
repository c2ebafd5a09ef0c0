/** Durations of audits: verification of a log, its export, verification of the export, and single proofs. */
import { Array as Arr, Clock, Effect, FileSystem, Layer, Option, type Redacted } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import { projections } from "#app/layers/Storage.ts"
import * as DatabaseAudit from "#events/log/verify/DatabaseAudit.ts"
import * as ExportAudit from "#events/log/export/ExportAudit.ts"
import * as LogExport from "#events/log/export/LogExport.ts"
import * as EventProofs from "#events/log/notary/EventProofs.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { LogSigner } from "#events/log/notary/LogSigner.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { keys, notaryLayer } from "#test/benchmarks/sections/Notary.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"
import * as SignedLog from "#test/support/SignedLog.ts"

/** Maximum number of generated events. More events do not make the figures more stable. */
const eventsMax = 1_000_000
const proofs = 200
const whole = "log verified"
const fast = "log verified with --fast"
const exported = "log exported"
const exportVerified = "export verified"

interface Step {
  readonly name: string
  readonly seconds: number
  readonly memoryMb: number
}

const timed = Effect.fnUntraced(function* <E, R>(name: string, effect: Effect.Effect<unknown, E, R>) {
  const before = ProcessorTime.read({})
  yield* effect
  const { seconds } = ProcessorTime.since(before)
  return { name, seconds, memoryMb: process.memoryUsage().rss / 1e6 } satisfies Step
})

/** Dies if a verification of the intact log found something. */
const intact = <E, R>(verified: Effect.Effect<DatabaseAudit.AuditReport, E, R>) =>
  Effect.tap(verified, ({ count, findings }) =>
    count === 0 ? Effect.void : Effect.die(`The verification of an intact log found ${count} defects: ${findings[0]?.message}`)
  )

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

/** Appends events, and waits until they are signed and in all projections. */
const fill = Effect.fnUntraced(function* (url: Redacted.Redacted, events: number) {
  yield* Layer.build(Layer.fresh(Layer.merge(SignedLog.notaryOf(keys), Projections.layer(projections))))
  yield* LogDatabase.fill(url, { events, keys: Math.ceil(events / 100), vatIds: Math.ceil(events / 10) })
  yield* Settled.wait(url)
}, Effect.scoped)

export const run = Effect.gen(function* () {
  const { events: wanted, rounds } = yield* BenchOptions
  const fs = yield* FileSystem.FileSystem
  const events = Math.min(wanted, eventsMax)
  const url = yield* LogDatabase.make("audit")
  const directory = `${yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-bench-" })}/export`
  const options = { directory, from: null, to: null, supplier: "", location: "", verifierKeys: [], progress }
  const { steps, times } = yield* Effect.gen(function* () {
    yield* fill(url, events)
    const schema = yield* SchemaComparison.load
    const verify = (isFast: boolean) =>
      intact(DatabaseAudit.run({ verifiers: keys.verifiers, kept: [], schema, isFast, progress }))
    const verifyExport = intact(ExportAudit.run({ directory, kept: [], verifiers: keys.verifiers, progress }))
    const timings: Array<Step> = []
    for (let round = 0; round < rounds; round += 1) {
      timings.push(yield* timed(whole, verify(false)))
      timings.push(yield* timed(fast, verify(true)))
    }
    timings.push(yield* timed(exported, LogExport.run(options)))
    timings.push(yield* timed(exportVerified, verifyExport))
    return { steps: timings, times: yield* prove(events) }
  }).pipe(
    Effect.provide(Layer.merge(logCatalogue, Layer.succeed(LogSigner, { origin: keys.name, keys: Option.some(keys) }))),
    Effect.provide(notaryLayer(url), { local: true })
  )
  const microsOf = (step: string) =>
    Report.median(steps.filter(({ name }) => name === step).map(({ seconds }) => (seconds * 1e6) / events))
  const report: Report.SectionReport = {
    section: "audit",
    how: `a log of ${events} events, verified ${rounds} times in each mode (medians), exported once`,
    figures: [
      Report.atMost(whole, microsOf(whole), "µs an event", 60),
      Report.atMost(fast, microsOf(fast), "µs an event", 20),
      Report.plain(exported, microsOf(exported), "µs an event"),
      Report.plain(exportVerified, microsOf(exportVerified), "µs an event"),
      Report.plain("a proof, p50", Report.median(times), "ms"),
      Report.plain("a proof, maximum", Math.max(...times), "ms")
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

/** Time that the notary takes per event of a backlog: it reads and hashes events, extends the tree, and signs once per 16,384 events. */
import { Array as Arr, Effect, Layer, Option, Schedule } from "effect"
import { Integrity } from "#domain/log/Integrity.ts"
import { TreeStore } from "#events/log/notary/TreeStore.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as SignedLog from "#test/support/SignedLog.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import { keysOf, signerOf } from "#test/support/log/Keys.ts"

/** Maximum number of generated events of a run. A notary refuses a log with more unsigned events at its start. */
const eventsMax = 100_000

export const keys = keysOf(signerOf("vatproof.example/log/0"))

/** Runs a notary until a checkpoint covers `size` events. */
const signUpTo = Effect.fnUntraced(function* (size: number) {
  const { newest } = yield* TreeStore
  yield* Layer.build(Layer.fresh(SignedLog.notaryOf(keys)))
  yield* Effect.repeat(newest, {
    until: Option.exists((checkpoint) => checkpoint.size >= size),
    schedule: Schedule.spaced("5 millis")
  })
}, Effect.scoped)

/** The services that a notary requires. */
export const notaryLayer = (url: Parameters<typeof LogDatabase.store>[0]) =>
  TreeStore.layer.pipe(
    Layer.provideMerge(LogDatabase.store(url)),
    Layer.provideMerge(Layer.merge(NodeCrypto.layer, Integrity.layer))
  )

export const run = Effect.gen(function* () {
  const { events: wanted, rounds } = yield* BenchOptions
  const { pid } = yield* PostgresServer
  const events = Math.min(eventsMax, Math.ceil(wanted / rounds))
  const url = yield* LogDatabase.make("notary")

  const sign = Effect.gen(function* () {
    const size = yield* LogDatabase.fill(url, { events, keys: Math.ceil(events / 100), vatIds: Math.ceil(events / 10) })
    const before = ProcessorTime.read(Option.isSome(pid) ? { Postgres: pid.value } : {})
    yield* signUpTo(size)
    const { own, seconds, watched } = ProcessorTime.since(before)
    return { micros: (seconds * 1e6) / events, own: own / events, postgres: (watched["Postgres"] ?? 0) / events }
  })

  const results = yield* Effect.provide(
    Effect.andThen(
      signUpTo(0),
      Effect.forEach(Arr.range(1, rounds), () => sign)
    ),
    notaryLayer(url),
    { local: true }
  )
  const of = (value: (result: (typeof results)[number]) => number) => Report.median(results.map(value))
  const report: Report.SectionReport = {
    section: "notary",
    how: `a notary with a backlog of ${events} unsigned events; medians of ${rounds} runs`,
    figures: [
      Report.atMost(
        "time an event",
        of(({ micros }) => micros),
        "µs",
        15
      ),
      Report.plain(
        "processor time of the notary's process",
        of(({ own }) => own),
        "µs an event"
      ),
      Report.plain(
        "processor time of Postgres",
        of(({ postgres }) => postgres),
        "µs an event"
      )
    ],
    details: [`µs an event, each run: ${results.map(({ micros }) => Report.digits(micros)).join("  ")}`]
  }
  return report
})

/** Compares the throughput on a large database and on an empty one, and measures memory growth under continued load. */
import { Array as Arr, Effect, Schedule } from "effect"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

/** Events per VAT ID: 10 million events have 1 million VAT IDs and 100,000 keys. */
const eventsPerVatId = 10
const eventsPerKey = 100

const subjectOf = Effect.fnUntraced(function* (name: string, events: number) {
  const url = yield* LogDatabase.make(name)
  if (events > 0) {
    const contents = { events, vatIds: Math.ceil(events / eventsPerVatId), keys: Math.ceil(events / eventsPerKey) }
    // A separate process signs and projects the events while they are appended: a notary that starts refuses many unsigned events. The
    // measured process then starts like a restarted service.
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Servers.service(url)
        yield* LogDatabase.fill(url, contents)
        yield* Settled.wait(url)
      })
    )
    yield* LogDatabase.vacuum(url)
  }
  const results: Array<Load.LoadResult> = []
  /** Starts a new process each time: processes of the same program differ in speed by up to a third. */
  const inProcess = <A, E, R>(use: (service: Servers.Server, subject: Workload.Subject) => Effect.Effect<A, E, R>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const service = yield* Servers.service(url)
        const subject = yield* Workload.prepare(service)
        yield* Settled.wait(url)
        return yield* use(service, subject)
      })
    )
  const plain = yield* Workload.cached
  const measure = Effect.map(
    inProcess((_, subject) => Workload.closedLoop(subject, plain)),
    (result) => results.push(result)
  )
  return { inProcess, results, measure }
})

/** Samples memory in MB each second under load. */
const watchMemory = Effect.fnUntraced(function* (service: Servers.Server, subject: Workload.Subject, minutes: number) {
  const samples: Array<number> = []
  const sample = Effect.sync(() => samples.push(ProcessorTime.memoryMb(service.pid, "VmRSS")))
  const result = yield* Effect.raceFirst(
    Workload.closedLoopFor(subject, yield* Workload.cached, minutes * 60_000),
    Effect.andThen(Effect.repeat(sample, Schedule.spaced("1 second")), Effect.never)
  )
  return { samples, result }
})

/** Returns the growth from the middle third of the samples to the last third. The first third is omitted: the heap still grows in it. */
const growthOf = (samples: ReadonlyArray<number>) => {
  const third = Math.floor(samples.length / 3)
  const middle = Report.median(samples.slice(third, 2 * third))
  const last = Report.median(samples.slice(2 * third))
  return { middle, last, percent: (100 * (last - middle)) / middle }
}

export const run = Effect.gen(function* () {
  const { events, minutes, rounds } = yield* BenchOptions
  const large = yield* subjectOf("large", events)
  const small = yield* subjectOf("small", 0)
  for (let round = 0; round < rounds; round += 1) {
    const order = round % 2 === 0 ? [small, large] : [large, small]
    yield* Effect.forEach(order, ({ measure }) => measure, { discard: true })
  }
  const ratios = Arr.zipWith(large.results, small.results, (one, other) => Load.perSecondOf(one) / Load.perSecondOf(other))
  const { result, samples } = yield* large.inProcess((service, subject) => watchMemory(service, subject, minutes))
  const growth = growthOf(samples)
  const report: Report.SectionReport = {
    section: "flat",
    how:
      `the same load on a database with ${events} events, ${Math.ceil(events / eventsPerVatId)} cached VAT IDs and ` +
      `${Math.ceil(events / eventsPerKey)} keys and on an empty one, medians of ${rounds} alternating runs, each in a process of its own; ` +
      `then ${minutes} minutes of load on the large one`,
    figures: [
      Report.atLeast("large ÷ small", 100 * Report.median(ratios), "%", 85),
      Report.atMost("memory of the service under full load, maximum", Math.max(...samples), "MB", 400),
      Report.atMost("memory growth, last third to middle third", growth.percent, "%", 5)
    ],
    details: [
      ResultTable.withRuns([
        { name: "large", results: large.results },
        { name: "small", results: small.results },
        { name: `large, ${minutes} minutes`, results: [result] }
      ]),
      `memory: ${growth.middle.toFixed(0)} MB in the middle third, ${growth.last.toFixed(0)} MB in the last`
    ]
  }
  return report
})

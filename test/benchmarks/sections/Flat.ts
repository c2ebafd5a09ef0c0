/** Whether a large database is as fast as a small one, and whether memory stays where it is while a load goes on. */
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

/** 10 million events make 1 million VAT IDs and 100,000 keys. */
const eventsOfVatId = 10
const eventsOfKey = 100

const subjectOf = Effect.fnUntraced(function* (name: string, events: number) {
  const url = yield* LogDatabase.make(name)
  if (events > 0) {
    const contents = { events, vatIds: Math.ceil(events / eventsOfVatId), keys: Math.ceil(events / eventsOfKey) }
    yield* LogDatabase.fill(url, contents)
    // Another process signs what was made up and follows it: what is measured begins as it would after a restart.
    yield* Effect.scoped(Effect.andThen(Servers.service(url), Settled.until(url)))
    yield* LogDatabase.tidy(url)
  }
  const results: Array<Load.LoadResult> = []
  /** In a process of its own each time: one may be a third slower than the next of the same program. */
  const inProcess = <A, E, R>(use: (service: Servers.Server, subject: Workload.Subject) => Effect.Effect<A, E, R>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const service = yield* Servers.service(url)
        const subject = yield* Workload.prepare(service)
        yield* Settled.until(url)
        return yield* use(service, subject)
      })
    )
  const plain = yield* Workload.plain
  const measure = Effect.map(
    inProcess((_, subject) => Workload.flatOut(subject, plain)),
    (result) => results.push(result)
  )
  return { inProcess, results, measure }
})

/** Memory in MB, second by second, while a load goes on that long. */
const watchMemory = Effect.fnUntraced(function* (service: Servers.Server, subject: Workload.Subject, minutes: number) {
  const samples: Array<number> = []
  const sample = Effect.sync(() => samples.push(ProcessorTime.memoryMb(service.pid, "VmRSS")))
  const result = yield* Effect.raceFirst(
    Workload.flatOutFor(subject, yield* Workload.plain, minutes * 60_000),
    Effect.andThen(Effect.repeat(sample, Schedule.spaced("1 second")), Effect.never)
  )
  return { samples, result }
})

/** Of the middle and the last third: what comes before is the heap finding its size. */
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
      `the same load on a database with ${events} events, ${Math.ceil(events / eventsOfVatId)} cached VAT IDs and ` +
      `${Math.ceil(events / eventsOfKey)} keys and on an empty one, medians of ${rounds} alternating runs, each in a process of its own; ` +
      `then ${minutes} minutes of it`,
    figures: [
      Report.atLeast("large ÷ small", 100 * Report.median(ratios), "%", 85),
      Report.atMost("memory of the service under full load, at most", Math.max(...samples), "MB", 400),
      Report.atMost("its growth, last third to middle third", growth.percent, "%", 5)
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

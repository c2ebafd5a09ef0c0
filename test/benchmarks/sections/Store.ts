/** Throughput of the event store alone: metered events per second into one log, through the shared group commit. */
import { Array as Arr, Clock, Effect } from "effect"
import { SecureRandom } from "effect/crypto"
import { EventStore } from "#events/log/store/EventStore.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import * as LogDatabase from "#test/benchmarks/servers/LogDatabase.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"

/** More concurrent writers than a batch has events, so that the next batch is full when the previous batch is stored. */
const writers = 1_000
const keys = 16
const warmUpMs = 1_000

interface Run {
  readonly perSecond: number
  readonly ownMicros: number
  readonly postgresMicros: number
}

/** Appends events for `durationMs`. Returns the rate and the CPU time per event. */
const appendFor = Effect.fnUntraced(function* (durationMs: number, streams: ReadonlyArray<string>) {
  const { append } = yield* EventStore
  const { pid } = yield* PostgresServer
  const before = ProcessorTime.read(pid._tag === "Some" ? { Postgres: pid.value } : {})
  const ends = (yield* Clock.currentTimeMillis) + durationMs
  let count = 0
  const one = Effect.suspend(() => {
    count += 1
    const stream = streams[count % streams.length] ?? ""
    return append({
      stream,
      expectedVersion: null,
      events: [LogDatabase.cacheHit(`ATU10${100_000 + (count % 1_000)}`, count)],
      charge: { meter: `${stream}-2026-11`, units: 1, cap: 2_000_000_000 }
    })
  })
  const isOver = Effect.map(Clock.currentTimeMillis, (now) => now >= ends)
  const writer = Effect.repeat(Effect.andThen(one, isOver), { until: (over) => over })
  yield* Effect.forEach(
    Arr.makeBy(writers, () => writer),
    (each) => each,
    { concurrency: "unbounded", discard: true }
  )
  const { own, seconds, watched } = ProcessorTime.since(before)
  const result: Run = { perSecond: count / seconds, ownMicros: own / count, postgresMicros: (watched["Postgres"] ?? 0) / count }
  return result
})

export const run = Effect.gen(function* () {
  const { rounds, seconds } = yield* BenchOptions
  const random = yield* SecureRandom.SecureRandom
  const streams = yield* Effect.forEach(Arr.range(1, keys), () => Effect.map(random.uuidV4(), (id) => `key-${id}`))
  const url = yield* LogDatabase.make("store")
  const results = yield* Effect.gen(function* () {
    yield* appendFor(warmUpMs, streams)
    return yield* Effect.forEach(Arr.range(1, rounds), () => appendFor(seconds * 1_000, streams))
  }).pipe(Effect.provide(LogDatabase.store(url), { local: true }))
  const of = (value: (result: Run) => number) => Report.median(results.map(value))
  const report: Report.SectionReport = {
    section: "store",
    how: `the event store in this process, ${writers} writers on ${keys} keys, each event charged to a meter; medians of ${rounds} runs`,
    figures: [
      Report.atLeast(
        "metered events a second into one log",
        of(({ perSecond }) => perSecond),
        "events/s",
        15_000
      ),
      Report.plain(
        "processor time of the store's process",
        of(({ ownMicros }) => ownMicros),
        "µs an event"
      ),
      Report.plain(
        "processor time of Postgres",
        of(({ postgresMicros }) => postgresMicros),
        "µs an event"
      )
    ],
    details: [`events a second, each run: ${results.map(({ perSecond }) => Report.digits(perSecond)).join("  ")}`]
  }
  return report
})

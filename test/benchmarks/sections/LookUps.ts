/**
 * Live look-ups while the source takes a second for each: 500 callers at once with 500 VAT IDs, and the overhead of the service.
 *
 * The service sends a source at most ten concurrent requests per member state. With all callers at once some wait for a slot, in rounds of
 * one second, and all compete for the processor. The service's time is the time of the last response, less the source's rounds, divided by
 * the callers. A second load measures the overhead of a look-up that does not queue: 100 a second over all member states, 100 in flight.
 * Its baseline is the same load on the source itself, without the service.
 */
import { Array as Arr, Effect } from "effect"
import * as Sandbox from "#infra/sandbox/Sandbox.ts"
import type { JournalEntry } from "#infra/sandbox/Journal.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

const callers = 500
/** One register is asked six times as much as it is given; the others share the rest. */
const crowded = "IT"
const crowdedCallers = 60
const perMemberState = 10
const sourceMs = 1_000
/** Of those outside of the crowd, 16 or 17 ask about each member state. */
const turnsOfOthers = 2
const overheadMs = 5
const perSecond = 100
const spreadOut = 400
/** Processor time of the service for each of them. */
const serviceMs = 1.5
/** Nearly as many as there are places for all member states together: 270. */
const perSecondWarm = 250
/** All at once, as far as a clock can tell. */
const atOnce = 1_000_000

interface Asked {
  readonly state: RegisterIds.MemberState
  readonly vatId: string
}

type Callers = Arr.NonEmptyReadonlyArray<Asked>

/** `series` keeps the VAT IDs of one burst apart from those of the others, which are in the cache by then. */
const inTurn = (series: number, states: ReadonlyArray<RegisterIds.MemberState>, count: number): Callers =>
  Arr.makeBy(count, (index) => {
    const state = states[index % states.length] ?? crowded
    return { state, vatId: RegisterIds.vatId(state, series * 1_000 + index) }
  })

/** The crowd comes first, so that calls queued behind it would show. */
const unevenly = (series: number): Callers => [
  ...inTurn(series, [crowded], crowdedCallers),
  ...inTurn(
    series + 1,
    RegisterIds.memberStates.filter((state) => state !== crowded),
    callers - crowdedCallers
  )
]

/** The most calls that were under way at a time about one member state. */
const mostUnderWay = (entries: ReadonlyArray<JournalEntry>) => {
  const byState = Object.values(Arr.groupBy(entries, ({ vat_id }) => vat_id?.slice(0, 2) ?? ""))
  return Math.max(...byState.map(mostAtOnce))
}

const mostAtOnce = (entries: ReadonlyArray<JournalEntry>) => {
  // A call that ends in the millisecond in which another begins is over by then.
  const moments = entries
    .flatMap(({ at, duration_ms }) => [
      { at: Date.parse(at), change: 1 },
      { at: Date.parse(at) + (duration_ms ?? 0), change: -1 }
    ])
    .toSorted((one, other) => one.at - other.at || one.change - other.change)
  let now = 0
  return Math.max(...moments.map(({ change }) => (now += change)))
}

/** How the burst went: when the last caller of the crowd and the last of all others had an answer, and what the source saw. */
const burst = Effect.fnUntraced(function* (series: number, ask: Ask) {
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const asked = unevenly(series)
  const { cpuMicros, eachMs } = yield* ask(asked, atOnce)
  const { bzst, entries, vies } = yield* sandbox.journal()
  const checks = entries.filter(({ vat_id }) => vat_id !== null)
  const msOf = (isIt: (state: string) => boolean) => Math.max(...eachMs.filter((_, index) => isIt(asked[index]?.state ?? "")))
  return {
    crowdMs: msOf((state) => state === crowded),
    othersMs: msOf((state) => state !== crowded),
    underWay: mostUnderWay(checks),
    underWayInAll: vies.concurrent_max,
    checks: vies.checks + bzst.checks,
    serviceMs: (cpuMicros["service"] ?? 0) / 1_000
  }
})

/** Callers without contention. */
const apart = Effect.fnUntraced(function* (series: number, ask: Ask) {
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  return yield* ask(inTurn(series, RegisterIds.memberStates, spreadOut), perSecond)
})

type Ask = (
  asked: Callers,
  perSecond: number
) => Effect.Effect<Load.LoadResult, Effect.Error<ReturnType<typeof Load.run>>, Effect.Services<ReturnType<typeof Load.run>>>

export const run = Effect.gen(function* () {
  const { rounds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const sandbox = yield* Sandbox.Sandbox
  const server = yield* Servers.service(yield* database("lookups"))
  const keys = yield* Servers.register(server, 16)
  const asking =
    (subject: Workload.Subject): Ask =>
    (questions, rate) =>
      Workload.load(
        subject,
        { kinds: ["cached"], connections: questions.length },
        { vatIds: Arr.map(questions, ({ vatId }) => vatId), perSecond: rate, requests: questions.length }
      )
  const ask = asking({ server, keys, viesPath: null })
  const askSource = asking(yield* Workload.source)
  // Compiles the code; the source answers at once.
  yield* ask(inTurn(1, RegisterIds.memberStates, 2 * callers), perSecondWarm)
  const together = yield* burst(2, ask)
  const spread = yield* Effect.forEach(Arr.range(1, rounds), (round) =>
    Effect.all({ service: apart(10 + round, ask), source: apart(10 + round, askSource) })
  )
  yield* sandbox.reset
  const added = (of: (latency: Load.Summary) => number) =>
    Report.median(spread.map(({ service, source }) => of(service.latencyMs) - of(source.latencyMs)))
  const serviceMsOf = Report.median(spread.map(({ service }) => Load.serviceMicrosOf(service) / 1_000))
  const report: Report.SectionReport = {
    section: "lookups",
    how:
      `the source takes ${sourceMs} ms; ${callers} callers at once on ${callers} VAT IDs, ${crowdedCallers} of them about one member ` +
      `state; and without contention, ${perSecond} a second over all member states, medians of ${rounds} runs`,
    figures: [
      Report.atMost("calls under way about one member state", together.underWay, "calls", perMemberState),
      Report.atMost("calls to the source for each caller", together.checks / callers, "calls", 1),
      // Behind the crowd they would wait for six of its turns first.
      Report.atMost("last answer outside of the crowd (two turns)", together.othersMs, "ms", 2 * turnsOfOthers * sourceMs),
      Report.atMost(
        `what is more than the two turns, for each of the ${callers}`,
        (together.othersMs - turnsOfOthers * sourceMs) / callers,
        "ms",
        overheadMs
      ),
      Report.plain(`processor time of the service, for each of the ${callers}`, together.serviceMs, "ms"),
      Report.plain("last answer to the crowd (six turns)", together.crowdMs, "ms"),
      Report.plain("calls under way in all, at most", together.underWayInAll, "calls"),
      ...(serviceMsOf > 0
        ? [Report.atMost(`processor time of the service for each at ${perSecond} a second`, serviceMsOf, "ms", serviceMs)]
        : []),
      Report.atMost(
        "added by the service without contention, p50",
        added(({ p50 }) => p50),
        "ms",
        overheadMs
      ),
      Report.plain(
        "added by the service without contention, p99",
        added(({ p99 }) => p99),
        "ms"
      )
    ],
    details: [
      ResultTable.withRuns([
        { name: `${perSecond} a second`, results: spread.map(({ service }) => service) },
        { name: "of the source itself", results: spread.map(({ source }) => source) }
      ])
    ]
  }
  return report
})

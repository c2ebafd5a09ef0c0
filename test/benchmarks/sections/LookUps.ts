/**
 * Live look-ups with a source that takes one second: 500 concurrent callers with 500 VAT IDs, and the overhead of the service.
 *
 * The service sends a source at most ten concurrent requests per member state. The other callers wait for a slot, in rounds of one second,
 * and all compete for the CPU. Overhead per caller = (time of the last response − rounds × one second) ÷ number of callers.
 * A second load measures look-ups that do not queue: 100 per second over all member states, 100 in flight. Their overhead is the difference
 * to the same load on the source itself.
 */
import { Array as Arr, Effect } from "effect"
import * as Sandbox from "#test/support/Sandbox.ts"
import type { JournalEntry } from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"

const callers = 500
/** The member state with six times as many callers as slots. The other callers are spread over the other member states. */
const busyState = "IT"
const busyCallers = 60
const perMemberState = 10
const sourceMs = 1_000
/** Rounds of the source for every other member state, which has 16 or 17 callers and 10 slots. */
const roundsOfOthers = 2
const overheadMs = 5
const perSecond = 100
const spreadCallers = 400
/** Limit of the service's CPU time per look-up. */
const cpuLimitMs = 1.5
/** Requests per second of the warm-up: just below the 270 slots of all member states together. */
const warmUpPerSecond = 250
/** Rate in requests per second that starts all callers within a millisecond. */
const burstPerSecond = 1_000_000

interface Question {
  readonly state: RegisterIds.MemberState
  readonly vatId: string
}

type Questions = Arr.NonEmptyReadonlyArray<Question>

/** Returns look-ups of the member states in turn. Each `series` has different VAT IDs, which are not cached yet. */
const acrossStates = (series: number, states: ReadonlyArray<RegisterIds.MemberState>, count: number): Questions =>
  Arr.makeBy(count, (index) => {
    const state = states[index % states.length] ?? busyState
    return { state, vatId: RegisterIds.vatId(state, series * 1_000 + index) }
  })

/** Puts the look-ups of the busy member state first, to show whether its queue delays other member states. */
const unevenBurst = (series: number): Questions => [
  ...acrossStates(series, [busyState], busyCallers),
  ...acrossStates(
    series + 1,
    RegisterIds.memberStates.filter((state) => state !== busyState),
    callers - busyCallers
  )
]

/** Maximum number of concurrent calls for one member state. */
const maxInFlightPerState = (entries: ReadonlyArray<JournalEntry>) => {
  const byState = Object.values(Arr.groupBy(entries, ({ vat_id }) => vat_id?.slice(0, 2) ?? ""))
  return Math.max(...byState.map(maxInFlight))
}

const maxInFlight = (entries: ReadonlyArray<JournalEntry>) => {
  // A call that ends in the millisecond in which another starts does not overlap it.
  const moments = entries
    .flatMap(({ at, duration_ms }) => [
      { at: Date.parse(at), change: 1 },
      { at: Date.parse(at) + (duration_ms ?? 0), change: -1 }
    ])
    .toSorted((one, other) => one.at - other.at || one.change - other.change)
  let now = 0
  return Math.max(...moments.map(({ change }) => (now += change)))
}

/** Sends a burst of look-ups. Returns the slowest response for the busy and for the other member states, and figures of the source. */
const burst = Effect.fnUntraced(function* (series: number, ask: Ask) {
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  const questions = unevenBurst(series)
  const { cpuMicros, eachMs } = yield* ask(questions, burstPerSecond)
  const { bzst, entries, vies } = yield* sandbox.journal()
  const checks = entries.filter(({ vat_id }) => vat_id !== null)
  const slowestMs = (matches: (state: string) => boolean) =>
    Math.max(...eachMs.filter((_, index) => matches(questions[index]?.state ?? "")))
  return {
    busyMs: slowestMs((state) => state === busyState),
    othersMs: slowestMs((state) => state !== busyState),
    inFlight: maxInFlightPerState(checks),
    inFlightTotal: vies.concurrent_max,
    checks: vies.checks + bzst.checks,
    serviceMs: (cpuMicros["service"] ?? 0) / 1_000
  }
})

/** Runs look-ups that do not queue. */
const unqueued = Effect.fnUntraced(function* (series: number, ask: Ask) {
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  yield* sandbox.configure({ latency_ms: sourceMs })
  return yield* ask(acrossStates(series, RegisterIds.memberStates, spreadCallers), perSecond)
})

type Ask = (
  questions: Questions,
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
  // Warm-up, in which V8 compiles the code. The source answers without delay.
  yield* ask(acrossStates(1, RegisterIds.memberStates, 2 * callers), warmUpPerSecond)
  const together = yield* burst(2, ask)
  const spread = yield* Effect.forEach(Arr.range(1, rounds), (round) =>
    Effect.all({ service: unqueued(10 + round, ask), source: unqueued(10 + round, askSource) })
  )
  yield* sandbox.reset
  const added = (of: (latency: Load.Summary) => number) =>
    Report.median(spread.map(({ service, source }) => of(service.latencyMs) - of(source.latencyMs)))
  const serviceMsOf = Report.median(spread.map(({ service }) => Load.serviceCpuMicros(service) / 1_000))
  const report: Report.SectionReport = {
    section: "lookups",
    how:
      `the source takes ${sourceMs} ms; ${callers} callers at once on ${callers} VAT IDs, ${busyCallers} of them about one member ` +
      `state; and without contention, ${perSecond} a second over all member states, medians of ${rounds} runs`,
    figures: [
      Report.atMost("calls in flight for one member state, maximum", together.inFlight, "calls", perMemberState),
      Report.atMost("calls of the source per caller", together.checks / callers, "calls", 1),
      // If the queue of the busy member state delayed the other member states, their look-ups would wait for six more rounds.
      Report.atMost(
        "last answer for the other member states (two rounds)",
        together.othersMs,
        "ms",
        2 * roundsOfOthers * sourceMs
      ),
      Report.atMost(
        `time beyond the two rounds, per caller of ${callers}`,
        (together.othersMs - roundsOfOthers * sourceMs) / callers,
        "ms",
        overheadMs
      ),
      Report.plain(`processor time of the service, per caller of ${callers}`, together.serviceMs, "ms"),
      Report.plain("last answer for the busy member state (six rounds)", together.busyMs, "ms"),
      Report.plain("calls in flight for all member states, maximum", together.inFlightTotal, "calls"),
      ...(serviceMsOf > 0
        ? [Report.atMost(`processor time of the service per look-up at ${perSecond} a second`, serviceMsOf, "ms", cpuLimitMs)]
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
        { name: "the source itself", results: spread.map(({ source }) => source) }
      ])
    ]
  }
  return report
})

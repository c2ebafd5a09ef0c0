/**
 * Validations that are answered later: submissions while all sources are down, their effect on cached validations, and batches of
 * 50,000 items.
 */
import { Array as Arr, Duration, Effect, Schedule, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import * as Sandbox from "#test/support/Sandbox.ts"
import { BenchOptions } from "#test/benchmarks/BenchOptions.ts"
import * as Load from "#test/benchmarks/load/Load.ts"
import * as RegisterIds from "#test/benchmarks/load/RegisterIds.ts"
import * as ResultTable from "#test/benchmarks/load/ResultTable.ts"
import * as Rounds from "#test/benchmarks/load/Rounds.ts"
import * as Workload from "#test/benchmarks/load/Workload.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"
import * as Report from "#test/benchmarks/Report.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"
import * as Servers from "#test/benchmarks/servers/Servers.ts"
import * as Settled from "#test/benchmarks/servers/Settled.ts"

/** Rates per second of two loads that run at the same time. */
const validationRate = 500
const submissionRate = 200
/** Minimum duration of a load, because a p99 needs a few thousand requests. */
const secondsMin = 8
const submissionConnections = 64
const warmUpMs = 5_000

const items = 50_000
/** Number of uploads whose memory growth is measured. The report has their median, because the first uploads also enlarge the heap. */
const uploads = 4
/** Index of the first VAT ID of the batches. The other loads use VAT IDs with lower indexes. */
const batchFrom = 10_000_000

const down = { vies_available: false, bzst_available: false }

/** Measures submissions alone, cached validations alone, and both at the same time. */
const measureSubmissions = Effect.gen(function* () {
  const { rounds, seconds } = yield* BenchOptions
  const { database } = yield* PostgresServer
  const sandbox = yield* Sandbox.Sandbox
  const url = yield* database("pending")
  const subject = yield* Workload.prepare(yield* Servers.service(url))
  yield* sandbox.configure(down)
  const durationMs = Math.max(seconds, secondsMin) * 1_000
  const submissions: Workload.Shape = { kinds: ["submission"], connections: submissionConnections }
  const closedLoop = (ms: number) => Workload.closedLoopFor(subject, submissions, ms)
  yield* closedLoop(warmUpMs)
  const validations = Workload.openLoop(subject, ["cached"], validationRate, durationMs)
  const others = Workload.openLoop(subject, submissions.kinds, submissionRate, durationMs)
  const settled = <A, E, R>(load: Effect.Effect<A, E, R>) => Effect.tap(load, () => Settled.wait(url))
  const alone = Rounds.series(settled(validations))
  const beside = Rounds.series(
    settled(Effect.map(Effect.all([validations, others], { concurrency: 2 }), ([ofValidations]) => ofValidations))
  )
  const submitted = Rounds.series(settled(closedLoop(durationMs)))
  // The closed loop comes last, because it leaves many pending validations.
  yield* Rounds.run(rounds, [[alone, beside]])
  yield* Rounds.run(rounds, [[submitted]])
  yield* sandbox.reset
  return { alone: alone.results, beside: beside.results, submitted: submitted.results }
}).pipe(Effect.scoped)

const Batch = Schema.Struct({ batch_id: Schema.String, status: Schema.String, counts: Schema.Struct({ final: Schema.Int }) })
const decodeBatch = Schema.decodeUnknownEffect(Batch)

const csvOf = (from: number) =>
  `custom_id,vat_id\n${Arr.makeBy(items, (index) => `customer-${index},${RegisterIds.roundRobin(from + index)}\n`).join("")}`

/** Uploads and cancels batches, and reads them until they are finished. */
const clientOf = Effect.fnUntraced(function* ({ keys: [key], server: { port } }: Workload.Subject) {
  const http = yield* HttpClient.HttpClient
  const path = `http://127.0.0.1:${port}/v1/batches`
  const send = (request: HttpClientRequest.HttpClientRequest) =>
    http.execute(HttpClientRequest.setHeader(request, "x-api-key", key)).pipe(
      Effect.flatMap((response) => response.json),
      Effect.flatMap(decodeBatch)
    )
  const finished = (id: string) =>
    send(HttpClientRequest.get(`${path}/${id}`)).pipe(
      Effect.repeat({ until: ({ status }) => status === "finished", schedule: Schedule.spaced("100 millis") }),
      Effect.timeout("10 minutes")
    )
  return {
    upload: (csv: string) => send(HttpClientRequest.bodyText(HttpClientRequest.post(path), csv, "text/csv")),
    cancel: (id: string) => send(HttpClientRequest.post(`${path}/${id}/cancel`)),
    finished
  }
})

/** Runs an effect. Returns its result, and the maximum memory growth of the process `pid` meanwhile in MB. */
const watchingMemory = <A, E, R>(pid: number, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const current = () => ProcessorTime.memoryMb(pid, "VmRSS")
    const before = current()
    let maximum = before
    const watch = Effect.sync(() => {
      maximum = Math.max(maximum, current())
    })
    const result = yield* Effect.raceFirst(
      effect,
      Effect.andThen(Effect.repeat(watch, Schedule.spaced("20 millis")), Effect.never)
    )
    yield* watch
    return { result, grownMb: maximum - before }
  })

/** Measures a batch whose answers are all in the cache, and uploads while all sources are down. */
const measureBatches = Effect.gen(function* () {
  const { database } = yield* PostgresServer
  const sandbox = yield* Sandbox.Sandbox
  const url = yield* database("batches")
  const server = yield* Servers.service(url)
  const subject = yield* Workload.prepare(server)
  const client = yield* clientOf(subject)
  // Fills the cache with a closed loop over all member states, with at most ten concurrent calls for each.
  yield* Workload.load(
    subject,
    { kinds: ["live"], connections: submissionConnections },
    { newFrom: batchFrom, requests: items, durationMs: 600_000 }
  )
  yield* Settled.wait(url)
  const [cachedTime, cached] = yield* Effect.timed(
    Effect.flatMap(client.upload(csvOf(batchFrom)), ({ batch_id }) => client.finished(batch_id))
  )
  yield* sandbox.configure(down)
  const uploaded = yield* Effect.forEach(
    Arr.range(1, uploads),
    Effect.fnUntraced(function* (index) {
      yield* Settled.wait(url)
      const upload = Effect.timed(client.upload(csvOf(batchFrom + index * items)))
      const { grownMb, result } = yield* watchingMemory(server.pid, upload)
      const [time, { batch_id }] = result
      yield* client.cancel(batch_id)
      return { grownMb, seconds: Duration.toSeconds(time) }
    })
  )
  yield* sandbox.reset
  return { cachedSeconds: Duration.toSeconds(cachedTime), final: cached.counts.final, uploaded }
}).pipe(Effect.scoped)

export const run = Effect.gen(function* () {
  const { rounds } = yield* BenchOptions
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.reset
  const { alone, beside, submitted } = yield* measureSubmissions
  const { cachedSeconds, final, uploaded } = yield* measureBatches
  const report: Report.SectionReport = {
    section: "pending",
    how:
      `submissions over ${submissionConnections} connections while all sources are down; ${validationRate} cached validations a second ` +
      `alone and beside ${submissionRate} submissions a second, medians of ${rounds} alternating runs, ratios per round; a CSV ` +
      `file of ${items} VAT IDs whose answers are in the cache, and ${uploads} uploads of as many others while all sources are down`,
    figures: [
      Report.atLeast("submissions", Report.median(submitted.map(Load.perSecondOf)), "requests/s", 2_000),
      Report.atLeast(
        "cached validations answered, beside submissions ÷ alone",
        Report.medianRatio(beside, alone, Load.perSecondOf),
        "×",
        0.95
      ),
      Report.atMost(
        "p99 of cached validations, beside submissions ÷ alone",
        Report.medianRatio(beside, alone, Load.p99Of),
        "×",
        1.1
      ),
      Report.plain("p50 of cached validations, beside submissions ÷ alone", Report.medianRatio(beside, alone, Load.p50Of), "×"),
      Report.atLeast("items of the batch that were answered", final, "items", items),
      Report.atMost("batch with cached answers, from the upload to the last answer", cachedSeconds, "s", 30),
      Report.atMost("upload, slowest", Math.max(...uploaded.map(({ seconds }) => seconds)), "s", 3),
      Report.atMost(
        "memory of the service during an upload, median growth",
        Report.median(uploaded.map(({ grownMb }) => grownMb)),
        "MB",
        20
      )
    ],
    details: [
      ResultTable.withRuns([
        { name: "submissions", results: submitted },
        { name: "cached validations alone", results: alone },
        { name: "cached validations beside submissions", results: beside }
      ]),
      "",
      Report.details(uploaded, { "upload s": ({ seconds }) => seconds, "memory grew by MB": ({ grownMb }) => grownMb })
    ]
  }
  return report
})

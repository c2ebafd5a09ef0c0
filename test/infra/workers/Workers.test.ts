import { Context, Effect, FileSystem, Layer, Schedule, Schema } from "effect"
import { HttpClient } from "effect/http"
import { Agent, get } from "node:http"
import * as RawHttp from "#test/support/RawHttp.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const quota = 60

const read = Effect.fnUntraced(function* (port: number, path: string) {
  const http = yield* HttpClient.HttpClient
  const response = yield* http.get(`http://127.0.0.1:${port}${path}`)
  return { status: response.status, text: yield* response.text }
})

const health = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n"

/** Sends requests on kept-alive connections. Ends with the first response other than 200. */
const askAlways = Effect.fnUntraced(function* (port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  yield* Effect.addFinalizer(() => Effect.sync(() => agent.destroy()))
  const status = Effect.callback<number | string>((resume) => {
    const end = (outcome: number | string) => resume(Effect.succeed(outcome))
    get({ agent, port, host: "127.0.0.1", path: "/health" }, (response) => {
      response.resume()
      response.on("end", () => end(response.statusCode ?? 0))
    }).on("error", ({ message }) => end(message))
  })
  const always = Effect.repeat(status, { schedule: Schedule.spaced("20 millis"), until: (outcome) => outcome !== 200 })
  return yield* Effect.raceAll(Array.from({ length: 16 }, () => always))
}, Effect.scoped)

const readyWorkers = (port: number) =>
  read(port, "/readyz").pipe(
    Effect.flatMap(({ text }) => decodeReady(text)),
    Effect.map((ready) => {
      for (const worker of ready.ready_workers)
        assert.containSubset(ready.workers[worker], { service: "serving", database: "ok" })
      return ready.ready_workers
    })
  )

const decodeReady = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({ ready_workers: Schema.Array(Schema.Int), workers: Schema.Record(Schema.String, Schema.Unknown) })
  )
)

const bothReady = (port: number) =>
  Effect.repeat(readyWorkers(port), { schedule: Schedule.spaced("50 millis"), until: (ready) => ready.length === 2 })

const workersThatServed = (metrics: string) =>
  new Set([...metrics.matchAll(/^http_server_request_duration_seconds_count\{worker="(\d+)"/gmu)].map(([, worker]) => worker))

/** Two workers, shared by the tests, and their admin port. */
class RunningWorkers extends Context.Service<
  RunningWorkers,
  { readonly workers: RunningService.ServiceProcess; readonly adminPort: number; readonly secretFile: string }
>()("vatproof/test/RunningWorkers") {}

const limits = { PLAN_FREE_PER_MONTH: String(quota), PLAN_FREE_PER_MINUTE: "100000" }

const runningWorkers = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const adminPort = yield* RunningService.freePort
  const secretFile = yield* fs.makeTempFileScoped()
  yield* fs.writeFileString(secretFile, "a secret that can be taken away from a test")
  const settings = { ...limits, ADMIN_PORT: String(adminPort), JWT_SECRET: "", JWT_SECRET_FILE: secretFile }
  const workers = yield* RunningService.spawn(settings, ["--workers", "2"])
  yield* bothReady(adminPort)
  return { workers, adminPort, secretFile }
})

const testLayer = Layer.effect(RunningWorkers, runningWorkers).pipe(Layer.provideMerge(RunningService.layerGround))

layer(testLayer, { excludeTestServices: true })("several worker processes on one port", (it) => {
  it.effect("enforce a quota exactly, together with another replica on the same database", function* () {
    const { adminPort, workers } = yield* RunningWorkers
    const replica = yield* RunningService.make(limits)

    const key = yield* workers.newKey
    const replies = yield* Effect.forEach(
      Array.from({ length: 4 * quota }, (_, index) => (index % 2 === 0 ? workers : replica)),
      (service, index) => service.validate(`ATU1234${5000 + (index % 7)}`, { key }),
      { concurrency: 32 }
    )
    const served = replies.filter(({ status }) => status === 200)
    assert.lengthOf(served, quota)
    assert.lengthOf(
      replies.filter(({ status }) => status === 402),
      3 * quota
    )
    const usages = served.map(({ headers }) => headers["x-service-usage"])
    assert.strictEqual(new Set(usages).size, quota, "each successful response reports a different usage")

    assert.deepStrictEqual(
      yield* Rows.one(
        { events: Schema.Int, charged: Schema.Int, used: Schema.Int },
        (sql) => sql`SELECT count(*)::int AS events, sum(units)::int AS charged,
            (SELECT max(used) FROM vatproof.meters)::int AS used FROM vatproof.events WHERE units > 0`
      ),
      { events: quota, charged: quota, used: quota }
    )

    const { text } = yield* read(adminPort, "/metrics")
    assert.strictEqual(workersThatServed(text).size, 2, "both workers have served requests")
    const types = [...text.matchAll(/^# TYPE (\S+)/gmu)].map(([, name]) => name)
    assert.strictEqual(new Set(types).size, types.length, "a metric is declared once")
  })

  it.effect("are replaced when they are killed, while the service continues", function* () {
    const { adminPort, workers } = yield* RunningWorkers
    const [, child] = /Worker 1 is process (\d+)/u.exec(yield* workers.output) ?? []
    process.kill(Number(child), "SIGKILL")
    yield* Effect.repeat(readyWorkers(adminPort), {
      schedule: Schedule.spaced("20 millis"),
      until: (ready) => ready.length === 1
    })
    yield* bothReady(adminPort)
    for (const _ of [1, 2, 3, 4]) assert.strictEqual((yield* workers.get("/health")).status, 200)
    const output = yield* workers.output
    assert.match(output, /Worker 1 ended \(SIGKILL\); starting its successor in 100 ms/u)
    const listens = [...output.matchAll(/"Vatproof listens on .*"replica":"[^"]+:(\d+)","worker":(\d)/gu)]
    assert.sameMembers(
      listens.map(([, port, worker]) => [Number(port), worker].join(" ")),
      [1, 2, 1].map((worker) => `${workers.port} ${worker}`)
    )
  })

  it.effect(
    "are replaced on SIGUSR2 without a failed request, and continue if their replacement cannot start",
    function* () {
      const fs = yield* FileSystem.FileSystem
      const { adminPort, secretFile, workers } = yield* RunningWorkers
      const started = Effect.map(workers.output, (output) => [...output.matchAll(/Worker \d is process (\d+)/gu)].length)
      const before = yield* started
      const until = (line: RegExp) =>
        Effect.repeat(workers.output, { schedule: Schedule.spaced("20 millis"), until: (output) => line.test(output) })

      const asking = yield* Effect.forkScoped(askAlways(workers.port))
      const idle = yield* RawHttp.open(workers.port)
      yield* idle.send(health)
      yield* idle.until((text) => text.includes("200 OK"))
      process.kill(workers.pid, "SIGUSR2")
      yield* until(/(?:was replaced; process \d+ ends after its last connection[^]*){2}/u)
      assert.strictEqual(yield* started, before + 2)
      yield* idle.send(health)
      assert.match(yield* idle.closed, /200 OK[^]*200 OK[^]*connection: close/iu)
      assert.isUndefined(asking.pollUnsafe())

      yield* fs.writeFileString(secretFile, "")
      process.kill(workers.pid, "SIGUSR2")
      yield* until(/The successor of worker 1 failed \(code 1\); the worker continues/u)
      assert.strictEqual(yield* started, before + 3)
      yield* bothReady(adminPort)
    },
    120_000
  )

  it.effect("stop on SIGTERM with exit code 0", function* () {
    const { workers } = yield* RunningWorkers
    const stops = Effect.map(workers.output, (output) => output.match(/Stopping: this replica is no longer ready/gu)?.length ?? 0)
    yield* workers.signal("SIGTERM")
    assert.strictEqual(yield* workers.ended, 0)
    assert.strictEqual(yield* stops, 4, "two workers, and the two that they replaced")
    const gone = yield* Effect.flip(workers.get("/health"))
    assert.strictEqual(gone._tag, "HttpClientError")
  })

  it.effect("exit if no worker can start", function* () {
    const defect = yield* Effect.sandbox(
      RunningService.spawn({ DATABASE_URL: "postgresql://absent@127.0.0.1:1/nothing", DATABASE_WAIT: "0" }, ["--workers", "2"])
    ).pipe(Effect.flip)
    assert.match(String(defect), /before the service was up/u)
  })
})

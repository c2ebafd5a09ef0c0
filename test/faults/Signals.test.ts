/** Tests how signals stop the service, and how it recovers from a crash. */
import { Clock, Effect, Exit, Fiber, FileSystem, Result } from "effect"
import { createHmac } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import { Sandbox } from "#test/support/Sandbox.ts"
import { vatIdEnding } from "#test/support/MagicVatIds.ts"
import * as People from "#test/support/People.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

/** Maximum duration of a stop in milliseconds. An orchestrator kills a process that takes much longer. */
const stopMsMax = 5_000

const isAlive = (pid: number) => Result.isSuccess(Result.try(() => process.kill(pid, 0)))

/** Signals the process and returns its exit code and the milliseconds until its exit. */
const stop = Effect.fnUntraced(function* (service: RunningService.ServiceProcess, signal: "SIGTERM" | "SIGINT") {
  const before = yield* Clock.currentTimeMillis
  yield* service.signal(signal)
  const code = yield* service.ended
  return { code, tookMs: (yield* Clock.currentTimeMillis) - before }
})

/** Creates a folder for an embedded database. The end of the scope stops a Postgres server that still runs in the folder. */
const dataDir = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const dir = yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-faults-" })
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.scoped(EmbeddedPostgres.make({ dir: join(dir, "postgres") }))))
  return dir
})

/** Returns whether Postgres runs. It writes postmaster.pid at its start and removes the file at its end. */
const serverRuns = (dir: string) => existsSync(join(dir, "postgres/cluster/data/postmaster.pid"))

layer(RunningService.layerGround, { excludeTestServices: true })("a service that receives SIGTERM or SIGINT", (it) => {
  it.effect("completes the requests in flight, and exits within 5 s even if a source does not respond", function* () {
    const sandbox = yield* Sandbox
    const service = yield* RunningService.spawn({ NOTARY_KEY: "" })
    assert.match(yield* service.output, /The log is not signed.*NOTARY_KEY/u)
    yield* sandbox.script([{ kind: "hang", source: "vies", on: "checks", count: 1 }])
    const hanging = yield* Effect.forkChild(Effect.exit(service.validate(vatIdEnding("LV", "480010"))))
    yield* sandbox.until(({ vies }) => vies.in_flight === 1)
    yield* sandbox.configure({ latency_ms: 1_000 })
    const requests = [1, 2, 3].map((index) =>
      service.validate(vatIdEnding("LV", `48000${index}`), { query: { force_live: "1" } })
    )
    const replies = yield* Effect.forkChild(Effect.all(requests, { concurrency: "unbounded" }))
    yield* sandbox.until(({ vies }) => vies.in_flight === 4)
    const { code, tookMs } = yield* stop(service, "SIGTERM")
    yield* sandbox.reset
    for (const reply of yield* Fiber.join(replies)) assert.containSubset(reply, { status: 200, body: { valid: true } })
    // No source gave a verdict, so the response has none.
    const ended = yield* Fiber.join(hanging)
    if (Exit.isSuccess(ended)) assert.strictEqual(ended.value.status, 503)
    assert.strictEqual(code, 0)
    assert.isBelow(tookMs, stopMsMax)
    assert.isFalse(isAlive(service.pid))
    assert.isTrue(Exit.isFailure(yield* Effect.exit(service.get("/health"))))
  })
})

layer(RunningService.layerSharedGround, { excludeTestServices: true })("a service with an embedded database", (it) => {
  it.effect("restarts after SIGKILL with the same data and JWT secret, and stops its database on SIGINT", function* () {
    const dir = yield* dataDir
    const settings = { DATABASE_URL: "", DATA_DIR: dir, JWT_SECRET: "" }
    const vatId = vatIdEnding("SE", "481001")
    const first = yield* RunningService.spawn(settings)
    const key = yield* first.newKey
    const { token } = yield* People.newUser(first)
    const signed = token.split(".").slice(0, 2).join(".")
    const secret = readFileSync(join(dir, "jwt-secret"), "utf8").trim()
    assert.strictEqual(token, `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`)
    assert.containSubset(yield* first.validate(vatId, { key }), { status: 200, body: { valid: true, cache: false } })
    yield* first.signal("SIGKILL")
    yield* first.ended
    assert.isTrue(serverRuns(dir))

    const second = yield* RunningService.spawn(settings)
    assert.containSubset(yield* second.validate(vatId, { key }), {
      status: 200,
      headers: { "x-service-usage": "2/100000" },
      body: { valid: true, cache: true, source: "cache" }
    })
    assert.strictEqual(yield* (yield* Sandbox).checks({ vatId }), 1)
    assert.strictEqual((yield* second.get("/v1/auth/api-keys", People.bearing(token))).status, 200)
    const { code, tookMs } = yield* stop(second, "SIGINT")
    assert.strictEqual(code, 0)
    assert.isBelow(tookMs, stopMsMax)
    assert.isFalse(serverRuns(dir))
  })
})

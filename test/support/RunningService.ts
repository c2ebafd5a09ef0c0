/**
 * Runs the whole service on a new database and a sandbox, in this process or in a new one.
 *
 *     layer(RunningService.layer(), { excludeTestServices: true })("…", (it) => …)
 *     const { ask } = yield* RunningService.RunningService        // one service
 *     const second = yield* RunningService.make()                 // another replica on the same database
 *     const process = yield* RunningService.spawn()               // one that can be killed
 *
 * A start costs more than most tests. `make` therefore reuses replicas with the same settings, and most files share the database and the
 * replicas of their worker (`layerShared`).
 */
import * as DatabaseBreaker from "#events/log/database/DatabaseBreaker.ts"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Clock,
  Context,
  Duration,
  Effect,
  Layer,
  ManagedRuntime,
  MutableRef,
  Option,
  Redacted,
  References,
  Schedule,
  Schema,
  Scope,
  Stream
} from "effect"
import { SecureRandom } from "effect/crypto"
import { ChildProcess } from "effect/process"
import { SqlClient } from "effect/sql"
import { createServer } from "node:net"
import { join } from "node:path"
import * as App from "#app/app.ts"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import { monotonicMsOf } from "#domain/concurrency/MonotonicTime.ts"
import * as AppConfig from "#infra/config/AppConfig.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as SandboxClock from "#test/support/SandboxClock.ts"
import * as ServiceClient from "#test/support/ServiceClient.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"
import * as Rows from "#test/support/Rows.ts"

/** Settings by their names in the environment. An empty value removes a default. */
export type Settings = Readonly<Record<string, string>>

/** Settings of most tests: high limits, a requester for the BZSt, and clients with the address in X-Forwarded-For. */
const generous: Settings = {
  ANONYMOUS_LIFETIME: "100000",
  ANONYMOUS_PER_MINUTE: "100000",
  PLAN_FREE_PER_MONTH: "100000",
  PLAN_FREE_PER_MINUTE: "100000",
  PLAN_STARTER_PER_MINUTE: "100000",
  // Low limits for tests of rejections.
  PLAN_STARTER_PER_MONTH: "1",
  PLAN_ENTERPRISE_PER_MINUTE: "2",
  PLAN_BUSINESS_PER_MONTH: "1000000",
  PLAN_BUSINESS_PER_MINUTE: "1000000",
  REGISTRATIONS_PER_DAY: "100000",
  SIGNUPS_PER_DAY: "100000",
  LOGIN_FAILURES_PER_15_MIN: "100000",
  JWT_SECRET: "a secret that every replica of a test has",
  BZST_REQUESTER_VAT_ID: "DE123456789",
  TRUST_PROXY: "1",
  ADMIN_PORT: "0"
}

/** Settings that remove all limits of `generous`, so that the service's defaults apply. */
export const ownLimits: Settings = Object.fromEntries(
  Object.keys(generous)
    .filter((name) => name.includes("PER_") || name.includes("LIFETIME"))
    .map((name) => [name, ""])
)

/** Settings that differ from the defaults, for tests of the operator's settings. */
export const otherSettings = {
  CACHE_TTL_INVALID: "3h",
  STALE_MAX_AGE: "2d",
  BZST_REQUESTER_VAT_ID: "",
  QUALIFIED_CONFIRMATION_COUNTRIES: "EU",
  SERVICE_NAME: "acme-vat",
  RECEIPT_PREFIX: "ACME",
  UPGRADE_URL: "https://vat.example/upgrade",
  CONTACT: "help@vat.example"
} satisfies Settings

/** One replica in this process. */
export interface Replica extends ServiceClient.ServiceClient {
  readonly port: number
  /** Moves the replica's clock ahead, and the clock of the sandbox by whole days. The clock of the database does not move. */
  readonly travel: (ahead: Duration.Input) => Effect.Effect<void>
  /** Stops the replica as SIGTERM does. A replica that is not stopped ends with its scope. */
  readonly stop: Effect.Effect<void>
}

/** Idle replicas with their settings as `key`, the longest idle one first. The end of `scope` stops them. */
class IdleReplicas extends Context.Service<
  IdleReplicas,
  { readonly scope: Scope.Scope; readonly idle: Array<Started & { readonly key: string }> }
>()("vatproof/test/IdleReplicas") {}

const idleReplicas = Layer.effect(
  IdleReplicas,
  Effect.map(Effect.scope, (scope) => ({ scope, idle: [] }))
)

export class RunningService extends Context.Service<RunningService, Replica>()("vatproof/test/RunningService") {}

/**
 * Returns a real clock that `travel` moves ahead. A move ends the sleeps that are due at the new time. `goBack` sets the wall clock back.
 * `breaker` ignores failed queries that began before the last move, because the clock of the database does not move.
 */
const makeClock = (real: Clock.Clock) => {
  const ahead = MutableRef.make(0)
  const travelled = MutableRef.make(0)
  let movedAtMs = Number.NEGATIVE_INFINITY
  const monotonicNanos = () => real.monotonicTimeNanosUnsafe() + BigInt(travelled.current) * 1_000_000n
  const sleepers = new Set<{ readonly until: number; readonly wake: () => void }>()
  const millis = () => real.currentTimeMillisUnsafe() + ahead.current
  const nanos = () => real.currentTimeNanosUnsafe() + BigInt(ahead.current) * 1_000_000n
  const untilMoved = (duration: Duration.Duration) =>
    Effect.callback<void>((resume) => {
      const sleeper = { until: millis() + Duration.toMillis(duration), wake: () => resume(Effect.void) }
      sleepers.add(sleeper)
      return Effect.sync(() => sleepers.delete(sleeper))
    })
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonicNanos,
    monotonicTimeNanos: Effect.sync(monotonicNanos),
    sleep: (duration) => Effect.raceFirst(real.sleep(duration), untilMoved(duration))
  }
  const travel = (duration: Duration.Input) =>
    Effect.sync(() => {
      for (const moved of [ahead, travelled]) MutableRef.update(moved, (before) => before + Duration.toMillis(duration))
      SandboxClock.follow(ahead.current)
      movedAtMs = monotonicMsOf(clock)
      for (const sleeper of [...sleepers].filter(({ until }) => until <= millis())) {
        sleepers.delete(sleeper)
        sleeper.wake()
      }
    })
  const goBack = Effect.sync(() => {
    MutableRef.set(ahead, 0)
    SandboxClock.follow(0)
  })
  const database = DatabaseBreaker.make()
  const breaker: DatabaseBreaker.DatabaseBreaker = {
    ...database,
    failed: (started, why) => (started < movedAtMs ? Effect.void : database.failed(started, why))
  }
  return { clock, travel, goBack, breaker }
}

/** Returns an unused port outside of the ephemeral range. */
export const freePort = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  return 10_000 + (Number.parseInt((yield* random.uuidV4()).slice(0, 4), 16) % 20_000)
}).pipe(
  Effect.flatMap((port) => Effect.as(tryPort(port), port)),
  Effect.retry({ times: 50 })
)

const tryPort = (port: number) =>
  Effect.callback<void, Error>((resume) => {
    const server = createServer()
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(port, "127.0.0.1", () => server.close(() => resume(Effect.void)))
  })

const settingsFor = Effect.fnUntraced(function* (settings: Settings) {
  const { url } = yield* TestDatabase.TestDatabase
  const port = settings["PORT"] === undefined ? yield* freePort : Number(settings["PORT"])
  return { port, env: { ...generous, DATABASE_URL: Redacted.value(url), PORT: String(port), ...settings } }
})

const platform = Layer.mergeAll(NodeServices.layer, SecureRandom.layerWebCrypto)

interface Started {
  readonly replica: Replica
  /** Undoes `travel`. Returns false if the replica has stopped. */
  readonly restore: Effect.Effect<boolean>
  /** Waits until the replica finds its sources operational after an outage. Returns false if it does not. */
  readonly recover: Effect.Effect<boolean>
}

/** Timeout of the recovery of an idle replica, whose clock moves ahead meanwhile. */
const recoveryTimeout = "1 second"

const launch = Effect.fnUntraced(function* (settings: Settings) {
  const mail = Option.map(yield* Effect.serviceOption(MailServer.MailServer), ({ url }) => ({
    SMTP_URL: Redacted.value(url),
    MAIL_FROM: "no-reply@vat.example"
  }))
  const { env, port } = yield* settingsFor({ ...Option.getOrUndefined(mail), ...settings })
  const { breaker, clock, goBack, travel } = makeClock(yield* Clock.Clock)
  const scope = yield* Scope.fork(yield* Effect.scope)
  yield* Scope.addFinalizer(scope, goBack)
  const config = Layer.effect(AppConfig.AppConfig, AppConfig.read(env))
  const service = App.service(yield* Sandbox.Sandbox).pipe(Layer.provide(config), Layer.provide(platform))
  // A separate memo map, so that two replicas share nothing but the database.
  yield* Layer.buildWithMemoMap(service, Layer.makeMemoMapUnsafe(), scope).pipe(
    Effect.provideService(Clock.Clock, clock),
    // Each replica has its own circuit breaker: queries of one replica must not close the breaker of another replica.
    Effect.provideService(DatabaseBreaker.DatabaseBreaker, breaker),
    Effect.provideService(References.MinimumLogLevel, "None")
  )
  const client = yield* ServiceClient.make(`http://127.0.0.1:${port}`)
  const stop = Effect.flatMap(Effect.exit(Effect.void), (exit) => Scope.close(scope, exit))
  const replica: Replica = { ...client, port, travel, stop }
  const isSound = Effect.map(client.get("/v1/status"), ({ text }) => !/"(?:degraded|unavailable)"/u.test(text))
  const restore = Effect.andThen(
    goBack,
    Effect.orElseSucceed(Effect.as(isSound, true), () => false)
  )
  // The next probes of the sources are due after some minutes of the replica's clock.
  const untilSound = Effect.repeat(Effect.andThen(travel("20 seconds"), isSound), {
    until: (sound) => sound,
    schedule: Schedule.spaced("10 millis")
  })
  const recover = Effect.flatMap(isSound, (sound) =>
    sound ? Effect.succeed(true) : Effect.ensuring(Effect.timeout(untilSound, recoveryTimeout), goBack)
  ).pipe(Effect.orElseSucceed(() => false))
  return { replica, restore, recover } satisfies Started
})

/** Starts a new replica in this process. Returns once the replica is ready. The end of the scope stops the replica. */
export const start = (settings: Settings = {}) => Effect.map(launch(settings), ({ replica }) => replica)

/** Limit of idle replicas, because each holds connections to the database and runs background jobs. */
const maxIdle = 6

/** Returns an idle replica with these settings, or starts one. No other test uses the replica until the caller's scope ends. */
export const make = Effect.fnUntraced(function* (settings: Settings = {}) {
  const { idle, scope } = yield* IdleReplicas
  const key = JSON.stringify(Object.entries(settings).toSorted())
  const index = idle.findLastIndex((one) => one.key === key)
  const [found] = index === -1 ? [] : idle.splice(index, 1)
  const isUsable = found !== undefined && (yield* found.recover)
  if (found !== undefined && !isUsable) yield* found.replica.stop
  const started = found !== undefined && isUsable ? found : yield* launch(settings).pipe(Scope.provide(scope))
  const { replica, restore } = started
  const giveBack = Effect.gen(function* () {
    if (!(yield* restore)) return yield* replica.stop
    idle.push({ ...started, key })
    if (idle.length > maxIdle) yield* idle.shift()?.replica.stop ?? Effect.void
  })
  yield* Effect.addFinalizer(() => giveBack)
  return replica
})

/**
 * An HTTP client that closes idle connections after 20 ms, because a stopping service waits for them. Consecutive requests of a test
 * still share a connection.
 */
const httpClient = NodeHttpClient.layerUndiciOptions({ keepAliveTimeout: 20, keepAliveMaxTimeout: 20 })

/** Everything that a service needs outside of its database: a sandbox, a mail server, an HTTP client. */
export const layerOutside = Layer.mergeAll(
  Layer.provide(Sandbox.layer({ host: "127.0.0.1", port: 0 }), SandboxClock.layer),
  MailServer.layer(),
  httpClient,
  platform,
  NodeCrypto.layerSecureRandom
)

/** Everything that a service needs, with a database and a pool of its administrator. */
export const layerGround = idleReplicas.pipe(Layer.provideMerge(Layer.merge(TestDatabase.layerClient, layerOutside)))

/** Provides a service, with a new database and everything else that it needs. */
export const layer = (settings: Settings = {}) =>
  Layer.effect(RunningService, make(settings)).pipe(Layer.provideMerge(layerGround))

/** The database, sandbox and mail server of a Vitest worker. Test files share them if they tolerate events of other files. */
const worker = ManagedRuntime.make(layerGround)

/** Provides the worker's shared database, sandbox and mail server. Removes answers, limits, addresses and mails of earlier test files. */
export const layerSharedGround = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`TRUNCATE vatproof.latest, vatproof.meters, vatproof.tasks, vatproof.rate_windows, vatproof.rate_slots, vatproof.contacts,
      vatproof.mail_tokens, vatproof.outbox CASCADE`.unprepared
    yield* (yield* Sandbox.Sandbox).reset
    yield* (yield* MailServer.MailServer).forget
  })
).pipe(Layer.provideMerge(Layer.effectContext(worker.contextEffect)))

/** Provides a service on the worker's shared database. */
export const layerShared = (settings: Settings = {}) =>
  Layer.effect(RunningService, make(settings)).pipe(Layer.provideMerge(layerSharedGround))

/** Changes the plan of a key's account, without an event. */
export const setPlan = Effect.fnUntraced(function* (key: string, plan: PlanName) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE vatproof.accounts SET plan = ${plan}
    WHERE account_id = (SELECT account_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea))`
})

/** Changes the monthly quota of a key's account, without an event. */
export const setQuota = Effect.fnUntraced(function* (key: string, perMonth: number) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`UPDATE vatproof.accounts SET per_month = ${perMonth}
    WHERE account_id = (SELECT account_id FROM vatproof.api_keys WHERE key_sha256 = sha256(${key}::text::bytea))`
})

/** Returns the log as text, to search it for data that must be absent. */
export const everythingLogged = Effect.gen(function* () {
  return (yield* Rows.all(
    { line: Schema.String },
    (sql) => sql`SELECT concat_ws(' ', stream_id, type, meter_id, data, metadata) AS line FROM vatproof.events ORDER BY position`
  ))
    .map(({ line }) => line)
    .join("\n")
})

/** A service in its own process. */
export interface ServiceProcess extends ServiceClient.ServiceClient {
  readonly port: number
  readonly pid: number
  readonly signal: (name: "SIGKILL" | "SIGTERM" | "SIGINT" | "SIGHUP") => Effect.Effect<void>
  /** Exit code of the process; null if a signal killed the process. */
  readonly ended: Effect.Effect<number | null>
  /** Output of the process so far. */
  readonly output: Effect.Effect<string>
}

const projectRoot = join(import.meta.dirname, "../..")

/**
 * Runs `vatproof serve <flags>` of the program in `cwd`, with the sandbox's sources. Returns once the service answers. The end of the scope
 * kills the process.
 */
export const spawn = Effect.fnUntraced(function* (settings: Settings = {}, flags: ReadonlyArray<string> = [], cwd = projectRoot) {
  const { bzstBaseUrl, viesBaseUrl } = yield* Sandbox.Sandbox
  const { env, port } = yield* settingsFor(settings)
  const handle = yield* ChildProcess.make(process.execPath, ["src/main.ts", "serve", ...flags], {
    cwd,
    env: {
      VIES_BASE_URL: viesBaseUrl,
      BZST_BASE_URL: bzstBaseUrl,
      ...env
    },
    extendEnv: true,
    stdin: "ignore",
    killSignal: "SIGKILL"
  })
  const written = MutableRef.make("")
  yield* handle.all.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Effect.sync(() => MutableRef.update(written, (before) => before + text))),
    Effect.ignore,
    Effect.forkScoped
  )
  const client = yield* ServiceClient.make(`http://127.0.0.1:${port}`)
  const ended = handle.exitCode.pipe(
    Effect.map((code): number | null => code),
    Effect.catchTag("PlatformError", () => Effect.succeed(null))
  )
  const started = client.get("/health").pipe(Effect.retry(Schedule.spaced("50 millis")), Effect.timeout("30 seconds"))
  yield* Effect.raceFirst(
    started,
    Effect.andThen(
      ended,
      Effect.suspend(() => Effect.die(`The service ended: ${written.current}`))
    )
  )
  const running: ServiceProcess = {
    ...client,
    port,
    pid: handle.pid,
    signal: (name) => Effect.sync(() => process.kill(handle.pid, name)),
    ended,
    output: Effect.sync(() => written.current)
  }
  return running
})

/** `vatproof doctor`: checks an installation, and says what to do about each fault. */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Array as Arr, Cause, Clock, DateTime, Effect, FileSystem, Layer, Option, Path, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { Headers, HttpClient } from "effect/http"
import { SqlClient, SqlSchema } from "effect/sql"
import { statfs } from "node:fs/promises"
import { isIP } from "node:net"
import { connect } from "node:tls"
import { json, print, quietly } from "#app/commands/Operation.ts"
import { record } from "#app/commands/Table.ts"
import { usualAdminPort } from "#app/layers/Admin.ts"
import { jwtSecrets } from "#app/layers/Credentials.ts"
import { wellFormedKeys } from "#app/layers/SignedLog.ts"
import { liveSources } from "#app/layers/Sources.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as LogOpening from "#events/log/store/LogOpening.ts"
import { AppConfig, mailOptionsOf, publicUrlOf } from "#infra/config/AppConfig.ts"
import { connectUrlOf } from "#infra/config/SettingForms.ts"
import * as SmtpMailer from "#infra/mail/SmtpMailer.ts"
import * as Database from "#infra/postgres/Database.ts"
import * as Protection from "#infra/postgres/Protection.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import { sentenceOf } from "#infra/postgres/SqlErrorCause.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/** The state of a part and, if it is not ok, what to do. A fault makes the exit code 1, a warning does not. */
type Result = readonly [state: "ok" | "warning" | "fault", message: string]
const ok = (message: string): Result => ["ok", message]
const warning = (message: string): Result => ["warning", message]
const fault = (message: string): Result => ["fault", message]
const within = (isSound: boolean, sound: string, unsound: string) => (isSound ? ok(sound) : fault(unsound))

/** Runs a check, for a few seconds at most. Its failure is a fault. */
const run = <E, R>(check: Effect.Effect<Result, E, R>) =>
  check.pipe(
    Effect.timeoutOrElse({ duration: "5 seconds", orElse: () => Effect.succeed(fault("No result within 5 seconds")) }),
    Effect.catchCause((cause) => Effect.succeed(fault(sentenceOf(Cause.squash(cause)))))
  )

const hoursAfter = (ms: number) => (to: DateTime.DateTime) => Math.floor((to.epochMilliseconds - ms) / 3_600_000)

/** Compares the clock of this machine with another one; 5 s are enough for slow responses. */
const compareClock = Effect.fnUntraced(function* (name: string, theirMs: number, otherwise: Result) {
  const ahead = Math.round(((yield* Clock.currentTimeMillis) - theirMs) / 1_000)
  return Math.abs(ahead) > 5 ? fault(`This clock is ${ahead} s ahead of ${name}: synchronise both (NTP)`) : otherwise
})

const settings = Effect.gen(function* () {
  const { databaseUrl, publicUrl, trustedProxies } = yield* AppConfig
  if (Option.isSome(databaseUrl)) yield* jwtSecrets
  if (Option.isNone(publicUrl)) return warning("Set PUBLIC_URL before the first start: it names the log")
  return trustedProxies === 0 && publicUrl.value.startsWith("https:")
    ? warning("Set TRUST_PROXY: otherwise all callers behind the proxy of PUBLIC_URL share their limits")
    : ok("valid")
})

/** Reads the status page of a source, and compares the clock with the time of the response. */
const source = Effect.fnUntraced(function* (setting: keyof typeof liveSources, path: string) {
  const base = Option.getOrElse((yield* AppConfig)[setting], () => liveSources[setting])
  const reply = yield* Effect.option(HttpClient.get(`${base}${path}`))
  if (Option.isNone(reply)) return fault(`${base} cannot be reached: allow the connection, or correct the setting`)
  const { headers, status } = reply.value
  const result = within(status === 200, "reachable", `${base} responds with ${status}: wait, or correct the setting`)
  const date = Option.flatMap(Headers.get(headers, "date"), DateTime.make)
  return Option.isNone(date) ? result : yield* compareClock(base, date.value.epochMilliseconds, result)
})

const tls = Effect.gen(function* () {
  const { hostname, port, protocol } = new URL(publicUrlOf(yield* AppConfig))
  if (protocol !== "https:") return warning("PUBLIC_URL is not https: put a proxy with TLS in front")
  const host = hostname.replace(/^\[|\]$/gu, "")
  const nowMs = yield* Clock.currentTimeMillis
  return yield* Effect.callback<Result>((resume) => {
    const end = (result: Result) => resume(Effect.succeed(result))
    const to = { host, port: Number(port || 443), servername: isIP(host) ? "" : host, rejectUnauthorized: false }
    const socket = connect(to, () => {
      const until = DateTime.make(socket.getPeerCertificate().valid_to)
      const days = Math.floor(Option.getOrElse(Option.map(until, hoursAfter(nowMs)), () => 0) / 24)
      if (!socket.authorized)
        return end(fault(`Clients reject the certificate, so renew it: ${String(socket.authorizationError)}`))
      end(within(days >= 14, `valid for ${days} days`, `The certificate ends in ${days} days: renew it`))
    })
    socket.once("error", ({ message }) => end(fault(`${message}: start the proxy of PUBLIC_URL`)))
    return Effect.sync(() => socket.destroy())
  })
})

const disk = Effect.gen(function* () {
  const { dataDir } = yield* AppConfig
  const { bavail, bsize } = yield* Effect.tryPromise(() => statfs(dataDir))
  const free = Math.floor((bavail * bsize) / 1_024 ** 2)
  return within(free >= 256, `${free} MiB are free`, `${dataDir} has only ${free} MiB of free space: free more`)
})

const backupName = /^base-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/u

const backup = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const newest = Arr.last(names.filter((name) => backupName.test(name)).toSorted())
  const madeAt = Option.flatMap(newest, (name) => DateTime.make(name.replace(backupName, "$1-$2-$3T$4:$5:$6Z")))
  if (Option.isNone(madeAt)) return warning(`${folder} has no base backup: run base-backup.sh, or give its folder by --backups`)
  const hours = hoursAfter(madeAt.value.epochMilliseconds)(yield* DateTime.now)
  return within(hours <= 26, `${hours} hours old`, `The newest backup is ${hours} hours old: run base-backup.sh daily`)
})

const notary = Effect.gen(function* () {
  const path = yield* Path.Path
  const { dataDir, databaseUrl, notaryKey, notaryKeyFile } = yield* AppConfig
  yield* Effect.scoped(Layer.build(wellFormedKeys))
  const own = Option.isNone(databaseUrl)
  if (Option.isSome(notaryKey)) return ok("set by NOTARY_KEY")
  if (Option.isNone(notaryKeyFile))
    return own
      ? warning(`The key is beside the database in ${dataDir}: keep a copy elsewhere`)
      : fault("Set NOTARY_KEY_FILE: the log is not signed")
  const file = path.resolve(notaryKeyFile.value)
  const { mode } = yield* (yield* FileSystem.FileSystem).stat(file)
  if (own && file.startsWith(path.resolve(dataDir))) return fault(`${file} is beside the database: move it out of ${dataDir}`)
  return within((mode & 0o007) === 0, "outside of the database", `Every user can read or change ${file}: chmod o= ${file}`)
})

/** Reads /readyz, which also tells a full database, altered evidence, and the state of each worker. */
const service = Effect.gen(function* () {
  const { adminHost, adminPort } = yield* AppConfig
  const port = Option.getOrElse(adminPort, () => usualAdminPort)
  const url = `${connectUrlOf(adminHost, port)}/readyz`
  const reply = yield* Effect.option(HttpClient.get(url))
  if (Option.isNone(reply)) return warning(`No service answers at ${url}: start it, or set its ADMIN_HOST and ADMIN_PORT`)
  const text = yield* reply.value.text
  const isSound = reply.value.status === 200 && !/"full"|"notary":|"altered":/u.test(text)
  return within(isSound, "ready", `Read the runbooks, because ${url} says ${text}`)
})

const mail = Effect.gen(function* () {
  const config = yield* AppConfig
  if (Option.isNone(config.smtpUrl)) return warning("Set SMTP_URL: mails are only written to DATA_DIR/outbox")
  const reason = yield* SmtpMailer.check({ ...mailOptionsOf(config), url: config.smtpUrl.value })
  return within(reason === null, "the server accepts the login", `Start the mail server, or correct SMTP_URL: ${reason}`)
})

const database = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { now_ms, number } = yield* SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ number: Schema.Int, now_ms: Schema.Finite }),
    execute: () => sql`SELECT current_setting('server_version_num')::int AS number,
      extract(epoch FROM clock_timestamp())::float8 * 1000 AS now_ms`
  })(undefined)
  const version = `PostgreSQL ${Math.floor(number / 10_000)}`
  return yield* compareClock("the database", now_ms, within(number >= 150_000, version, `${version}: upgrade to 15 or newer`))
})

const schema = Effect.gen(function* () {
  const found = (yield* yield* SchemaComparison.load).map(({ message, object }) => `${object}: ${message}`)
  return within(found.length === 0, "as in this version", `Run "vatproof audit verify", then migrate: ${found.join("; ")}`)
})
const rights = Effect.map(Protection.missing, (gaps) => within(gaps.length === 0, "only to call functions", gaps.join("; ")))
const purpose = Effect.map(LogOpening.purposeOf, (found) => (found === "live" ? ok("live") : fault(LogOpening.advice[found])))

/** Without a database of this version all these checks would fail, so its absence is one fault. */
const stored = { database: run(database), schema: run(schema), rights: run(rights), purpose: run(purpose) }
const inDatabase = Effect.all(stored, { concurrency: "unbounded" }).pipe(
  Effect.provide(EventStore.layer.pipe(Layer.provideMerge(Database.layerExisting))),
  Effect.timeout("15 seconds"),
  Effect.catchCause((cause) => Effect.all({ database: run(Effect.failCause(cause)) }))
)

/** The results were printed already. */
class Unsound extends Schema.TaggedError<Unsound>()("Unsound", { message: Schema.String }) {}

export const doctor = Command.make(
  "doctor",
  {
    backups: Flag.String("backups").pipe(Flag.withDefault("/backup"), Flag.withDescription("The folder of base-backup.sh")),
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const here = { settings: run(settings), tls: run(tls), disk: run(disk), notary: run(notary), mail: run(mail) }
      const vies = run(source("viesBaseUrl", "/check-status"))
      const bzst = run(source("bzstBaseUrl", "/v1/info/eu_mitgliedstaaten"))
      const all = { ...here, service: run(service), backup: run(backup(flags.backups)), vies, bzst, inDatabase }
      const { inDatabase: found, ...others } = yield* Effect.all(all, { concurrency: "unbounded" })
      const results = Object.entries({ ...others, ...found })
      const checks = results.map(([part, [state, message]]) => ({ part, state, message }))
      const lines = checks.map(({ message, part, state }) => [`${state.padEnd(7)}  ${part}`, message] as const)
      yield* print(flags.json, { checks }, record(lines))
      const faults = checks.filter(({ state }) => state === "fault").length
      if (faults > 0) return yield* new Unsound({ message: `Faults: ${faults}` })
    },
    Effect.provide([NodeHttpClient.layerUndici, NodeCrypto.layer]),
    quietly
  )
).pipe(
  Command.withDescription(
    "Check this installation, change nothing, and print a line for each part with what to do. Ends with exit code 1 if there is a fault"
  )
)

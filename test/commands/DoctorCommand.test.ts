/** `vatproof doctor` on a sound installation, and with one planted fault at a time. */
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Context, DateTime, Effect, Layer, Redacted, Schema } from "effect"
import { commandWith, spawned } from "#test/support/CommandLine.ts"
import * as EmbeddedService from "#test/support/EmbeddedService.ts"
import { signing, temporaryFolder } from "#test/support/Auditing.ts"
import * as LocalCertificate from "#test/support/LocalCertificate.ts"
import * as LoginRole from "#test/support/LoginRole.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as Sandbox from "#test/support/Sandbox.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as WallClock from "#test/support/WallClock.ts"

/** A sound installation: its settings, and the folder of its backups. */
class Installation extends Context.Service<
  Installation,
  { readonly settings: Readonly<Record<string, string>>; readonly backups: string; readonly keyFile: string }
>()("vatproof/test/Installation") {}

const newestBackup = Effect.map(DateTime.now, (now) => `base-${DateTime.formatIso(now).slice(0, 19).replace(/[-:]/gu, "")}Z`)

const installation = Layer.effect(
  Installation,
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const [keyFile, backups] = [join(folder, "notary.key"), join(folder, "backups")]
    const { NOTARY_KEY, DATA_DIR } = signing(folder)
    writeFileSync(keyFile, NOTARY_KEY, { mode: 0o600 })
    mkdirSync(join(backups, yield* newestBackup), { recursive: true })
    const { bzstBaseUrl, viesBaseUrl } = yield* Sandbox.Sandbox
    const settings = {
      DATA_DIR,
      NOTARY_KEY_FILE: keyFile,
      ADMIN_PORT: String(yield* RunningService.freePort),
      JWT_SECRET: "a secret that has at least 32 characters",
      TRUST_PROXY: "1",
      VIES_BASE_URL: viesBaseUrl,
      BZST_BASE_URL: bzstBaseUrl,
      SMTP_URL: Redacted.value((yield* MailServer.MailServer).url),
      PUBLIC_URL: yield* LocalCertificate.serve({ days: 90, trusted: true })
    }
    yield* RunningService.start({ ...settings, PUBLIC_URL: "" })
    return { settings, backups, keyFile }
  })
).pipe(Layer.provideMerge(RunningService.layerGround))

const Checks = Schema.fromJsonString(
  Schema.Struct({
    checks: Schema.Array(Schema.Struct({ part: Schema.String, state: Schema.String, message: Schema.String }))
  })
)

/** Runs the command with changed settings. Returns its findings that are not ok, as lines. */
const findings = Effect.fnUntraced(function* (changed: Readonly<Record<string, string>> = {}, folder?: string) {
  const { backups, settings } = yield* Installation
  const { failure, output } = yield* commandWith({ ...settings, ...changed }, "doctor", "--backups", folder ?? backups, "--json")
  const { checks } = yield* Schema.decodeUnknownEffect(Checks)(output)
  const lines = checks.filter(({ state }) => state !== "ok").map(({ message, part, state }) => `${state} ${part}: ${message}`)
  assert.strictEqual(
    failure !== null,
    lines.some((line) => line.startsWith("fault "))
  )
  return lines
})

/** Asserts that the command finds exactly this. */
const assertFound = (lines: ReadonlyArray<string>, ...expected: ReadonlyArray<RegExp>) => {
  assert.lengthOf(lines, expected.length, lines.join("\n"))
  for (const one of expected)
    assert.isTrue(
      lines.some((line) => one.test(line)),
      `${one}\n${lines.join("\n")}`
    )
}

/** Runs an effect while a change of the database is in force. */
const whileChanged = <A, E, R>(change: string, undo: string, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    MigratedDatabase.execute(change),
    () => effect,
    () => Effect.orDie(MigratedDatabase.execute(undo))
  )

const closedPort = "http://127.0.0.1:9"

layer(installation, { excludeTestServices: true })("`vatproof doctor`", (it) => {
  it.effect("finds nothing on a sound installation, and prints a line for each part", function* () {
    assertFound(yield* findings())
    const { backups, settings } = yield* Installation
    const { failure, output } = yield* commandWith(settings, "doctor", "--backups", backups)
    assert.isNull(failure)
    assert.lengthOf(output.split("\n"), 13)
    assert.match(output, /^ok {7}database +PostgreSQL \d+$/mu)
  })

  it.effect.each([
    { what: "a missing JWT_SECRET", set: { JWT_SECRET: "" }, found: /^fault settings: .*JWT_SECRET is required/u },
    { what: "VIES out of reach", set: { VIES_BASE_URL: closedPort }, found: /^fault vies: .*cannot be reached/u },
    { what: "the BZSt out of reach", set: { BZST_BASE_URL: closedPort }, found: /^fault bzst: .*cannot be reached/u },
    { what: "no server at PUBLIC_URL", set: { PUBLIC_URL: "https://localhost:9" }, found: /^fault tls: .*start the proxy/u },
    { what: "a full disk of DATA_DIR", set: { DATA_DIR: "/proc/sys" }, found: /^fault disk: .* 0 MiB/u },
    { what: "a log without a key", set: { NOTARY_KEY_FILE: "" }, found: /^fault notary: Set NOTARY_KEY_FILE/u },
    { what: "a missing key file", set: { NOTARY_KEY_FILE: "/none" }, found: /^fault notary: NOTARY_KEY_FILE cannot be read/u },
    { what: "a mail server that is down", set: { SMTP_URL: "smtp://127.0.0.1:9" }, found: /^fault mail: Start the mail server/u },
    { what: "a database that is down", set: { DATABASE_URL: "postgresql://a@127.0.0.1:9/a" }, found: /^fault database: /u },
    { what: "no proxy in TRUST_PROXY", set: { TRUST_PROXY: "0" }, found: /^warning settings: Set TRUST_PROXY/u },
    { what: "a service that does not run", set: { ADMIN_PORT: "9" }, found: /^warning service: No service answers/u },
    { what: "mails without a server", set: { SMTP_URL: "" }, found: /^warning mail: Set SMTP_URL/u },
    { what: "PUBLIC_URL without TLS", set: { PUBLIC_URL: "http://localhost" }, found: /^warning tls: PUBLIC_URL is not https/u }
  ])("finds $what", function* ({ found, set }) {
    assertFound(yield* findings(set), found)
  })

  it.effect("finds a certificate that ends soon, and one that clients reject", function* () {
    const soon = yield* LocalCertificate.serve({ days: 5, trusted: true })
    assertFound(yield* findings({ PUBLIC_URL: soon }), /^fault tls: The certificate ends in [45] days: renew it/u)
    const own = yield* LocalCertificate.serve({ days: 90, trusted: false })
    assertFound(yield* findings({ PUBLIC_URL: own }), /^fault tls: Clients reject the certificate.*SELF_SIGNED/u)
  })

  it.effect("finds an old backup, and a folder without one", function* () {
    const folder = yield* temporaryFolder
    assertFound(yield* findings({}, folder), /^warning backup: .* has no base backup/u)
    mkdirSync(join(folder, "base-20200101T020000Z"))
    assertFound(yield* findings({}, folder), /^fault backup: The newest backup is \d+ hours old/u)
  })

  it.effect("finds a notary key that every user can read", function* () {
    const { keyFile } = yield* Installation
    chmodSync(keyFile, 0o644)
    yield* Effect.addFinalizer(() => Effect.sync(() => chmodSync(keyFile, 0o600)))
    assertFound(yield* findings(), /^fault notary: Every user can read/u)
  })

  it.effect("finds a clock that differs from the database and the sources", function* () {
    const { on, setBack } = yield* WallClock.make
    setBack("1 hour")
    const lines = (yield* on(findings())).filter((line) => !line.includes("backup"))
    assertFound(
      lines,
      /^fault vies: .*-3[56]\d\d s/u,
      /^fault bzst: .*-3[56]\d\d s/u,
      /^fault database: .*-3[56]\d\d s ahead of the database/u
    )
  })

  it.effect("finds a database without migrations", function* () {
    const { url } = yield* Effect.map(Layer.build(TestDatabase.layerEmpty), (built) =>
      Context.get(built, TestDatabase.TestDatabase)
    )
    assertFound(yield* findings({ DATABASE_URL: Redacted.value(url) }), /^fault database: .*run "vatproof migrate" first/u)
  })

  it.effect("finds a changed function", function* () {
    const plant = "ALTER FUNCTION vatproof.sweep_limits RESET search_path"
    const undo = "ALTER FUNCTION vatproof.sweep_limits SET search_path = vatproof, pg_temp"
    assertFound(yield* whileChanged(plant, undo, findings()), /^fault schema: .*function vatproof\.sweep_limits/u)
  })

  it.effect("finds missing event triggers", function* () {
    const trigger = "EVENT TRIGGER vatproof_refuse_drop"
    const lines = yield* whileChanged(`ALTER ${trigger} DISABLE`, `ALTER ${trigger} ENABLE ALWAYS`, findings())
    assertFound(lines, /^fault schema: /u, /^fault rights: DROP, DETACH and DISABLE TRIGGER are not refused/u)
  })

  it.effect("finds a login role that is no member of the service's role", function* () {
    const { login, url } = yield* LoginRole.make
    yield* MigratedDatabase.execute(`GRANT USAGE ON SCHEMA vatproof TO ${login}`)
    yield* MigratedDatabase.execute(`GRANT SELECT ON ALL TABLES IN SCHEMA vatproof, public TO ${login}`)
    yield* Effect.addFinalizer(() => Effect.ignore(MigratedDatabase.execute(`DROP OWNED BY ${login}`)))
    const lines = yield* findings({ DATABASE_URL: Redacted.value(url) })
    assert.isTrue(
      lines.some((line) => line.startsWith("fault rights: the database role of the service may do more")),
      lines.join("\n")
    )
  })

  it.effect("finds a full database by the report of the service", function* () {
    yield* MigratedDatabase.execute(`CREATE FUNCTION public.disk_full() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN RAISE EXCEPTION ''full'' USING ERRCODE = ''53100''; END'`)
    const trigger =
      "CREATE TRIGGER disk_full BEFORE INSERT ON vatproof.events FOR EACH STATEMENT EXECUTE FUNCTION public.disk_full()"
    const admin = yield* RunningService.freePort
    const service = yield* RunningService.start({ ...(yield* Installation).settings, ADMIN_PORT: String(admin), PUBLIC_URL: "" })
    yield* MigratedDatabase.execute(trigger)
    yield* Effect.addFinalizer(() => Effect.orDie(MigratedDatabase.execute("DROP FUNCTION public.disk_full CASCADE")))
    yield* service.validate("ATU12345678")
    const lines = yield* findings({ ADMIN_PORT: String(admin) })
    assert.isTrue(
      lines.some((line) => /^fault service: .*"database":"full"/u.test(line)),
      lines.join("\n")
    )
  })

  it.effect("names every invalid setting", function* () {
    const folder = yield* temporaryFolder
    const wrong = { ...EmbeddedService.environment(folder), HOST: "a b", PORT: "x", TRUST_PROXY: "many" }
    const { code, stderr } = yield* spawned(wrong, "doctor")
    assert.strictEqual(code, 1)
    assert.match(stderr, /^vatproof: HOST: .*; PORT: .*; TRUST_PROXY: .*\n$/u)
  })

  it.effect("finds the log of a sandbox in place of a live one, and a notary key beside the database", function* () {
    const { client, env } = yield* EmbeddedService.start("sandbox")
    // The service answers /health before its database is migrated.
    yield* Effect.repeat(client.validate("ATU12345678"), { until: ({ status }) => status === 200 })
    const { stdout } = yield* spawned(env, "doctor")
    assert.match(stdout, /^fault +purpose +The log is that of a sandbox/mu)
    assert.match(stdout, /^warning +notary +The key is beside the database/mu)
  })
})

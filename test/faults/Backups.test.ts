/** The scripts of backups that timers and CronJobs run: the encrypted copy in another place, and the test of a restore. */
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { spawnSync } from "node:child_process"
import { Effect, Schedule } from "effect"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { assert, layer } from "#test/support/Test.ts"

const root = join(import.meta.dirname, "../..")
const hasPrograms = ["gpg", "/usr/lib/postgresql"].every(
  (name) => spawnSync("sh", ["-c", `command -v ${name} || ls ${name}`]).status === 0
)

const gpg = (home: string, ...args: ReadonlyArray<string>) => {
  const { status, stderr, stdout } = spawnSync("gpg", ["--homedir", home, "--batch", "--quiet", ...args], { maxBuffer: 2 ** 28 })
  assert.strictEqual(status, 0, stderr.toString())
  return stdout
}

/** A server with an archive and a base backup, the scripts in a folder of its user, and a key pair. */
const backedUp = Effect.gen(function* () {
  const folder = yield* PostgresServer.sharedFolder
  const server = yield* PostgresServer.make({
    settings: ["archive_mode=on", `archive_command=sh ${folder}/recovery/archive-wal.sh ${folder}/wal %p %f`]
  })
  const script = (name: string, ...args: ReadonlyArray<string>) =>
    PostgresServer.script(server, `${folder}/recovery/${name}`, ...args)
  yield* server.program("cp", "-r", join(root, "docs/operations/recovery"), folder)
  yield* Scenario.migrate(server.url)
  const replica = yield* Scenario.replica(server.url)
  yield* replica.validate("ATU12345678")
  yield* replica.signal("SIGTERM")
  yield* replica.ended
  const home = yield* PostgresServer.sharedFolder
  gpg(
    home,
    "--passphrase",
    "",
    "--pinentry-mode",
    "loopback",
    "--quick-generate-key",
    "backup",
    "future-default",
    "default",
    "never"
  )
  writeFileSync(`${folder}/key.asc`, gpg(home, "--armor", "--export", "backup"))
  return { folder, home, script, server }
})

layer(RunningService.layerOutside, { excludeTestServices: true })("the backups", (it) => {
  it.effect(
    "are copied encrypted to another place, and a restore of them is verified",
    function* (context) {
      context.skip(!hasPrograms, "skipped: gpg or PostgreSQL's server package is not installed")
      const { folder, home, script, server } = yield* backedUp
      const early = yield* Effect.flip(script("offsite.sh", folder, `${folder}/offsite`, `${folder}/key.asc`))
      assert.include(early.message, "has no base backup: run base-backup.sh first")

      const base = (yield* script("base-backup.sh", folder)).trim().split("\n").at(-1) ?? ""
      const switched = (yield* server.program("psql", "-Atc", "SELECT pg_walfile_name(pg_switch_wal())")).trim()
      const archived = server.program("psql", "-Atc", "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver")
      yield* Effect.repeat(archived, { until: (last) => last.trim() >= switched, schedule: Schedule.spaced("100 millis") })

      const copy = (yield* script("offsite.sh", folder, `${folder}/offsite`, `${folder}/key.asc`)).trim()
      assert.strictEqual(copy, `${folder}/offsite/${base.split("/").at(-1)}.tar.gpg`)
      assert.notInclude(readFileSync(copy).toString("latin1"), "START WAL LOCATION")
      assert.include(gpg(home, "--decrypt", copy).toString("latin1"), "START WAL LOCATION")
      const segment = gpg(home, "--decrypt", `${folder}/offsite/wal/${switched}.gz.gpg`)
      assert.isTrue(segment.equals(readFileSync(`${folder}/wal/${switched}.gz`)))
      // A second run copies nothing again.
      assert.strictEqual((yield* script("offsite.sh", folder, `${folder}/offsite`, `${folder}/key.asc`)).trim(), copy)

      // `peer` admits a role with the name of the operating system's user.
      const user = (yield* server.program("id", "-un")).trim()
      yield* server.program(
        "psql",
        "-qc",
        `DO $$ BEGIN CREATE ROLE "${user}" SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`
      )
      yield* server.program("psql", "-qc", "SELECT pg_switch_wal()")
      const newer = (yield* script("base-backup.sh", folder)).trim()
      assert.include(newer, "base-")
      const verify = [`PGUSER=${user}`, "PGDATABASE=postgres", `DATA_DIR=${folder}/verify`, `NOTARY_KEY=${Scenario.notaryKey}`]
      const test = [`${folder}/recovery/restore-test.sh`, folder, process.execPath, join(root, "src/main.ts"), "audit", "verify"]
      const output = yield* server.program("env", ...verify, "sh", ...test)
      assert.match(output, /^The log is intact: /u)
      const failing = [`${folder}/recovery/restore-test.sh`, folder, "false"]
      assert.strictEqual((yield* Effect.flip(server.program("env", ...verify, "sh", ...failing))).code, "1")

      yield* script("succeeded.sh", "base", folder)
      const metric = readFileSync(`${folder}/vatproof-backup-base.prom`, "utf8")
      assert.match(metric, /^vatproof_backup_success_time_seconds\{vatproof_backup="base"\} \d{10}\n$/u)
      rmSync(`${folder}/offsite`, { recursive: true })
    },
    120_000
  )
})

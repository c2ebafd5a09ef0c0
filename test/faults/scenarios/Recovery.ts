/** Runs the scripts of docs/operations/recovery under load and verifies each event of the restored logs. */
import { Clock, Effect, FileSystem, Redacted, Schedule } from "effect"
import { join } from "node:path"
import * as Ledger from "#test/faults/Ledger.ts"
import type { Outcome } from "#test/faults/Load.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"

const scripts = join(import.meta.dirname, "../../../docs/operations/recovery")

/** Starts a server with Debian's configuration layout and a WAL archive. Copies the scripts to a folder that the server's user can read. */
const archived = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* PostgresServer.sharedFolder
  yield* fs.copy(scripts, `${folder}/recovery`)
  const server = yield* PostgresServer.make({
    separateConfiguration: true,
    settings: ["archive_mode=on", `archive_command=sh ${folder}/recovery/archive-wal.sh ${folder}/wal %p %f`, "archive_timeout=2"]
  })
  const runScript = (name: string, ...args: ReadonlyArray<string>) =>
    PostgresServer.script(server, `${folder}/recovery/${name}`, ...args)
  return { folder, server, runScript }
})

const psql = (server: PostgresServer.PostgresServer, ...args: ReadonlyArray<string>) =>
  Effect.map(server.program("psql", "-At", ...args), (text) => text.trim())

/** Restores a backup and the archive, and starts a server on them. Returns when recovery has ended. */
const restored = Effect.fnUntraced(function* (
  { runScript, server: original }: Effect.Success<typeof archived>,
  backup: string,
  archive: string,
  ...moment: ReadonlyArray<string>
) {
  const folder = yield* PostgresServer.sharedFolder
  yield* runScript("restore.sh", backup, archive, `${folder}/data`, ...moment)
  // Uses the pg_hba.conf of the original server, because the one that restore.sh creates requires passwords.
  const server = yield* PostgresServer.open(folder, [`hba_file=${original.folder}/etc/pg_hba.conf`])
  yield* Effect.repeat(psql(server, "-c", "SELECT pg_is_in_recovery()"), {
    schedule: Schedule.spaced("100 millis"),
    until: (recovering) => recovering === "f"
  })
  return server
})

/** Statements that must fail on a restored database, even for the owner of the schema. */
const attacks = [
  "DELETE FROM vatproof.events WHERE position = 0",
  "TRUNCATE vatproof.events_p0",
  "DROP TABLE vatproof.events_p0",
  "ALTER TABLE vatproof.events DETACH PARTITION vatproof.events_p0",
  "ALTER TABLE vatproof.events DISABLE TRIGGER append_only",
  "SET ROLE vatproof_service; UPDATE vatproof.meters SET used = 0"
]

const verify = Effect.fnUntraced(function* (
  name: string,
  server: PostgresServer.PostgresServer,
  outcomes: ReadonlyArray<Outcome>
) {
  const count = yield* Ledger.count(server.url, outcomes)
  const refused = yield* Effect.forEach(attacks, (attack) =>
    Effect.match(psql(server, "-v", "ON_ERROR_STOP=1", "-c", attack), { onFailure: () => true, onSuccess: () => false })
  )
  const claims = [
    ...Scenario.claimsOf(count),
    yield* Scenario.audit(server.url),
    {
      statement: `${refused.filter((isRefused) => isRefused).length} of ${attacks.length} attacks on the log fail`,
      holds: refused.every((isRefused) => isRefused)
    }
  ]
  return claims.map(({ holds, statement }) => ({ holds, statement: `${name}: ${statement}` }))
})

/** Claims that a replica starts on the database and answers a validation. */
const serves = Effect.fnUntraced(function* (name: string, server: PostgresServer.PostgresServer) {
  const replica = yield* Scenario.replica(server.url)
  const { status } = yield* replica.validate("ATU12345678")
  return { statement: `${name}: a replica starts and answers (${status})`, holds: status === 200 }
})

/** Makes a base backup and a dump under load. Restores the dump, and the backup to the end of the archive and to a point in time. */
export const recovery = Effect.gen(function* () {
  const source = yield* archived
  const { folder, runScript, server } = source
  const replica = yield* Scenario.replica(server.url)
  const taken = { backup: "", moment: "", momentMs: 0 }
  const report = yield* Scenario.run({
    name: "recovery",
    baseUrl: replica.baseUrl,
    key: yield* replica.newKey,
    database: () => server.url,
    fault: Effect.gen(function* () {
      taken.backup = (yield* runScript("base-backup.sh", folder)).trim().split("\n").at(-1) ?? ""
      yield* Effect.delay(Effect.void, "3 seconds")
      taken.momentMs = yield* Clock.currentTimeMillis
      taken.moment = yield* psql(server, "-c", "SELECT clock_timestamp()")
      yield* runScript("dump.sh", `${folder}/dump`)
      return []
    })
  })
  yield* replica.signal("SIGTERM")
  yield* replica.ended
  const last = yield* psql(server, "-c", "SELECT pg_walfile_name(pg_switch_wal())")
  yield* Effect.repeat(psql(server, "-c", "SELECT last_archived_wal FROM pg_stat_archiver"), {
    schedule: Schedule.spaced("200 millis"),
    until: (archivedWal) => archivedWal >= last
  })
  // Counts the events before any verification, because each verification appends an event.
  const { events } = yield* Ledger.count(server.url, [])

  const latest = yield* restored(source, taken.backup, `${folder}/wal`)
  const afterwards = yield* Ledger.count(latest.url, [])
  const toTheEnd = yield* verify("base backup and archive", latest, report.outcomes)

  const then = yield* restored(source, taken.backup, `${folder}/wal`, taken.moment)
  const newer = yield* psql(then, "-c", `SELECT count(*) FROM vatproof.events WHERE recorded_at > '${taken.moment}'`)
  const before = report.outcomes.filter(({ durationMs, startedMs }) => startedMs + durationMs < taken.momentMs)
  const toTheMoment = yield* verify("point in time", then, before)

  const other = yield* PostgresServer.make()
  yield* PostgresServer.script(other, `${folder}/recovery/restore-dump.sh`, `${folder}/dump`, "restored")
  const copy = { ...other, url: Redacted.make(Redacted.value(other.url).replace(/postgres$/u, "restored")) }
  const named = {
    ...copy,
    program: (name: string, ...args: ReadonlyArray<string>) => other.program("env", "PGDATABASE=restored", name, ...args)
  }
  const fromDump = yield* verify("dump", named, before)

  return Scenario.withClaims(
    report,
    ...toTheEnd,
    {
      statement: `base backup and archive: all ${events} events are restored (${afterwards.events})`,
      holds: afterwards.events === events
    },
    yield* serves("base backup and archive", latest),
    ...toTheMoment,
    { statement: `point in time: no restored event is newer (${newer} are)`, holds: newer === "0" },
    ...fromDump,
    yield* serves("dump", copy)
  )
})

/**
 * Makes the database that the upgrade test begins with: a dump with events of every kind, as this version writes them.
 *
 *     npm run fixture
 *
 * Run it after a change of the unreleased baseline, and for each release. A fixture of a released version is never made again.
 * docs/operations/upgrades.md has the rules.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Console, Effect, FileSystem, Redacted } from "effect"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { version } from "#domain/kernel/Version.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as PostgresServer from "#test/faults/PostgresServer.ts"
import * as Scenario from "#test/faults/Scenario.ts"
import * as EveryEndpoint from "#test/support/EveryEndpoint.ts"
import * as MailServer from "#test/support/MailServer.ts"
import * as RunningService from "#test/support/RunningService.ts"
import * as TestDatabase from "#test/support/TestDatabase.ts"

/** INSERT statements, because the driver has no COPY. The roles are those of the migrations, which every server of a test has. */
const form = ["--inserts", "--rows-per-insert=50"]

const make = Effect.gen(function* () {
  const server = yield* PostgresServer.make()
  yield* Scenario.migrate(server.url)
  const database = yield* TestDatabase.describe(server.url, "fixture")
  const { url: mails } = yield* MailServer.MailServer
  const settings = { ...EveryEndpoint.settings, SMTP_URL: Redacted.value(mails), MAIL_FROM: "no-reply@vat.example" }
  const service = yield* Scenario.replica(server.url, settings)
  yield* Effect.gen(function* () {
    const busy = yield* EveryEndpoint.makeBusy(service)
    yield* EveryEndpoint.drive(service, { busy, run: 1, isFilled: false })
  }).pipe(
    Effect.provideService(TestDatabase.TestDatabase, database),
    Effect.provide(Postgres.layerAdministrator({ url: server.url, maxConnections: 4 }))
  )
  yield* service.signal("SIGTERM")
  yield* service.ended
  // The requests set plans without an event.
  yield* Scenario.command(server.url, "projections", "rebuild", "accounts")
  const { holds, statement } = yield* Scenario.audit(server.url)
  if (!holds) return yield* Effect.die(statement)
  // `\restrict` and `\unrestrict` are commands of psql. The superuser of another server has another name.
  const dump = (yield* server.program("pg_dump", ...form))
    .replace(/^\\(?:un)?restrict .*\n/gmu, "")
    .replace(/ (TO|FROM|ROLE) postgres\b/gu, " $1 CURRENT_USER")
  const file = join(import.meta.dirname, "fixtures", `${version}.sql.gz`)
  yield* (yield* FileSystem.FileSystem).writeFile(file, gzipSync(dump, { level: 9 }))
  yield* Console.log(`${file}: ${dump.length} characters`)
})

NodeRuntime.runMain(Effect.scoped(make).pipe(Effect.provide(RunningService.layerOutside)))

/** The database role of auditors can read five views, and nothing else. */
import { Effect, Exit, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { command } from "#test/support/CommandLine.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { confirm, newPaidKey, receiptIdOf } from "#test/support/PaidKey.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const views = ["events", "key_revocations", "personal_documents", "receipts", "verifications"]

/** Runs statements as a member of the auditors' role. */
const asAuditor = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  MigratedDatabase.asAdministrator(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return yield* sql.withTransaction(Effect.andThen(sql`SET LOCAL ROLE vatproof_auditor`, effect))
    })
  )

const texts = Effect.fnUntraced(function* (statement: string) {
  return (yield* Rows.all({ text: Schema.NullOr(Schema.String) }, (sql) => sql.unsafe(statement))).map(({ text }) => text)
})

const service = Layer.effect(RunningService.RunningService, RunningService.make()).pipe(
  Layer.provideMerge(RunningService.layerGround)
)

layer(service, { excludeTestServices: true })("The auditors' role", (it) => {
  it.effect("reads events, receipts, verifications and key revocations", function* () {
    const running = yield* RunningService.RunningService
    const key = yield* newPaidKey(running)
    const reply = yield* confirm(running, "DE123456789", key)
    yield* running.validate("ATU12345678", { key })
    const read = (statement: string) => asAuditor(texts(statement))
    yield* Effect.repeat(read("SELECT vat_id AS text FROM audit.verifications"), { until: (rows) => rows.length > 0 })
    assert.deepStrictEqual(yield* read("SELECT receipt_id AS text FROM audit.receipts"), [yield* receiptIdOf(reply)])
    assert.deepStrictEqual(yield* read("SELECT target_vat_id AS text FROM audit.receipts"), ["DE123456789"])
    const [count] = yield* read("SELECT count(*)::text AS text FROM audit.events")
    assert.isAtLeast(Number(count), 4)
    const [keyId] = yield* read("SELECT data::jsonb ->> 'key_id' AS text FROM audit.events WHERE type = 'ApiKeyIssued'")
    yield* command("key", "revoke", keyId ?? "", "--reason", "abuse", "--by", "carol")
    const revoked = read("SELECT concat_ws(' ', key_id, revoked_by, actor, reason) AS text FROM audit.key_revocations")
    assert.deepStrictEqual(yield* Effect.repeat(revoked, { until: (rows) => rows.length > 0 }), [`${keyId} operator carol abuse`])
    for (const view of views) yield* asAuditor(MigratedDatabase.execute(`SELECT count(*) FROM audit.${view}`))
  })

  it.effect("finds a comment on every view and every column", function* () {
    const names = yield* texts(
      "SELECT relname AS text FROM pg_class WHERE relnamespace = 'audit'::regnamespace AND relkind = 'v' ORDER BY 1"
    )
    assert.deepStrictEqual(names, views)
    const unexplained =
      yield* texts(`SELECT a.attrelid::regclass || '.' || a.attname AS text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'audit'::regnamespace AND a.attnum > 0
          AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid) IS NULL)`)
    assert.deepStrictEqual(unexplained, [])
  })

  it.effect("can read only the views for auditors, and can change nothing", function* () {
    const tables = yield* texts(
      `SELECT oid::regclass::text AS text FROM pg_class WHERE relnamespace IN ('vatproof'::regnamespace, 'public'::regnamespace) AND relkind IN ('r', 'p', 'v', 'S')`
    )
    assert.isAtLeast(tables.length, 10)
    const refused = [
      ...tables.flatMap((table) => [`SELECT count(*) FROM ${table}`, `DELETE FROM ${table}`]),
      ...views.flatMap((view) => [
        `DELETE FROM audit.${view}`,
        `UPDATE audit.${view} SET position = position`,
        `DROP VIEW audit.${view}`,
        `CREATE OR REPLACE VIEW audit.${view} AS SELECT 1 AS one`
      ]),
      "CREATE TABLE audit.mine (one int)",
      "CREATE TABLE public.mine (one int)",
      "SELECT vatproof.ensure_partitions(0::smallint)",
      "SELECT vatproof.position_at(0::smallint, now())",
      "SELECT vatproof.claim_notary(0::smallint, gen_random_uuid(), 1000)",
      "SELECT vatproof.project(0::smallint, 0, 1, false)",
      "SET ROLE vatproof_owner",
      "SELECT pg_read_file('/etc/passwd')"
    ]
    const isAllowed = Effect.fnUntraced(function* (statement: string) {
      const sql = yield* SqlClient.SqlClient
      // Uses SESSION AUTHORIZATION, because a statement could undo SET ROLE.
      const asMember = Effect.andThen(sql`SET LOCAL SESSION AUTHORIZATION vatproof_auditor`, sql.unsafe(statement).unprepared)
      return Exit.isSuccess(yield* Effect.exit(sql.withTransaction(asMember)))
    })
    assert.deepStrictEqual(yield* MigratedDatabase.asAdministrator(Effect.filter(refused, isAllowed)), [])
  })
})

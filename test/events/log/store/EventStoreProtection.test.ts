/** Protection of the log in the database: rights restrict the role of the service, and triggers restrict a superuser. */
import { Effect, Predicate, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { EventStore } from "#events/log/store/EventStore.ts"
import { answered } from "#test/support/SourceAnswer.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"
import * as Rows from "#test/support/Rows.ts"

const append = Effect.gen(function* () {
  const events = yield* EventStore
  return yield* events.append({
    stream: "protected",
    expectedVersion: null,
    events: [answered("protected")],
    charge: null
  })
})

const messageOf = ({ reason }: SqlError) =>
  Predicate.hasProperty(reason.cause, "message") ? String(reason.cause.message) : String(reason)

/** A digest of the events, and their triggers and partitions, to detect changes. */
const fingerprint = Effect.gen(function* () {
  return yield* Rows.one(
    { events: Schema.String, triggers: Schema.String, partitions: Schema.String },
    (sql) => sql`SELECT
      (SELECT md5(string_agg(e::text, '' ORDER BY position)) FROM vatproof.events e) AS events,
      (SELECT string_agg(tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text, ', ' ORDER BY tgrelid::regclass::text, tgname)
        FROM pg_trigger WHERE tgname LIKE 'append_only%') AS triggers,
      (SELECT string_agg(inhrelid::regclass::text, ', ' ORDER BY inhrelid::regclass::text) FROM pg_inherits
        WHERE inhparent = 'vatproof.events'::regclass) AS partitions`
  )
})

const ofTheOwner = [
  "UPDATE vatproof.events SET data = '{}'",
  "UPDATE vatproof.events_p0 SET data = '{}'",
  "UPDATE vatproof.events SET position = position + 1",
  "DELETE FROM vatproof.events",
  "DELETE FROM vatproof.events_p0 WHERE position = 0",
  "MERGE INTO vatproof.events e USING (SELECT 0 AS position) x ON e.position = x.position WHEN MATCHED THEN DELETE",
  "TRUNCATE vatproof.events",
  "TRUNCATE vatproof.events_p0",
  "TRUNCATE vatproof.events_p2",
  "TRUNCATE vatproof.events CASCADE",
  "DROP TABLE vatproof.events",
  "DROP TABLE vatproof.events_p0",
  "DROP TABLE vatproof.events CASCADE",
  "DROP SCHEMA vatproof CASCADE",
  "ALTER TABLE vatproof.events DETACH PARTITION vatproof.events_p0",
  "ALTER TABLE vatproof.events DETACH PARTITION vatproof.events_p2",
  "ALTER TABLE vatproof.events DISABLE TRIGGER append_only",
  "ALTER TABLE vatproof.events DISABLE TRIGGER ALL",
  "ALTER TABLE vatproof.events DISABLE TRIGGER USER",
  "ALTER TABLE vatproof.events_p0 DISABLE TRIGGER append_only",
  "ALTER TABLE vatproof.events_p0 DISABLE TRIGGER append_only_truncate",
  "ALTER TABLE vatproof.events_p0 ENABLE REPLICA TRIGGER append_only",
  "ALTER TABLE vatproof.events ENABLE TRIGGER append_only",
  "DROP TRIGGER append_only ON vatproof.events",
  "DROP TRIGGER append_only_truncate ON vatproof.events_p0",
  "DROP FUNCTION vatproof.refuse_change() CASCADE",
  "ALTER TABLE vatproof.events DROP COLUMN data",
  "DROP OWNED BY vatproof_owner CASCADE",
  "ALTER TABLE vatproof.events ALTER COLUMN data TYPE text USING '{}'",
  "ALTER TABLE vatproof.events_p0 RENAME TO forgotten",
  "ALTER TABLE vatproof.events RENAME TO forgotten",
  "ALTER TABLE vatproof.events_p0 SET SCHEMA public",
  "ALTER TRIGGER append_only ON vatproof.events RENAME TO something",
  "ALTER TRIGGER append_only_truncate ON vatproof.events_p0 RENAME TO something",
  "ALTER SCHEMA vatproof RENAME TO forgotten"
]

/** Runs a statement in the session mode of replication, in which Postgres fires no ordinary triggers. */
const asReplica = (statement: string) => `DO $$ BEGIN SET LOCAL session_replication_role = replica; ${statement}; END $$`

layer(MigratedDatabase.layer, { excludeTestServices: true })("the protection of the log", (it) => {
  it.effect.each([...ofTheOwner, ...ofTheOwner.slice(0, 8).map(asReplica)])(
    "rejects the statement of a superuser, and leaves the log unchanged: %s",
    function* (statement) {
      yield* append
      const before = yield* fingerprint
      // Retries, because DROP OWNED scans the whole server and fails if another test drops its database at the same time.
      const refusal = yield* Effect.flip(MigratedDatabase.execute(statement)).pipe(
        Effect.repeat({ while: (error) => messageOf(error).startsWith("tuple concurrently"), times: 50 })
      )
      // If views depend on a table or column, the server rejects the statement before any trigger runs.
      assert.match(messageOf(refusal), /append-only|other objects depend on|used by a view/u)
      assert.deepStrictEqual(yield* fingerprint, before)
    }
  )

  it.effect.each([
    ...ofTheOwner,
    "INSERT INTO vatproof.events SELECT log_id, position + 1000, stream_id, version + 1000, gen_random_uuid(), type, schema_version, occurred_at, recorded_at, correlation_id, causation_id, trace_id, meter_id, units, data, metadata FROM vatproof.events LIMIT 1",
    "UPDATE vatproof.logs SET next_position = 0",
    "UPDATE vatproof.streams SET version = 0",
    "UPDATE vatproof.meters SET used = 0",
    "INSERT INTO vatproof.meters VALUES (0, 'free', 0)",
    "UPDATE vatproof.latest SET position = 0",
    "DELETE FROM vatproof.latest",
    "TRUNCATE vatproof.meters",
    "CREATE TABLE vatproof.mine (x int)",
    "CREATE OR REPLACE FUNCTION vatproof.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
    "CREATE RULE r AS ON SELECT TO vatproof.streams DO INSTEAD NOTHING",
    "CREATE TRIGGER mine BEFORE INSERT ON vatproof.events FOR EACH ROW EXECUTE FUNCTION vatproof.refuse_change()",
    "SET session_replication_role = replica",
    "SELECT vatproof_guard.refuse_drop()",
    "ALTER EVENT TRIGGER vatproof_refuse_drop DISABLE",
    "ALTER ROLE vatproof_service SUPERUSER"
  ])("rejects the statement of the service's database role, and leaves the log unchanged: %s", function* (statement) {
    yield* append
    const before = yield* fingerprint
    const sql = yield* SqlClient.SqlClient
    const refusal = yield* Effect.flip(sql.unsafe(statement).unprepared)
    assert.match(
      messageOf(refusal),
      /permission denied|must be owner|must be superuser|append-only|must be able to|does not exist|only roles? with/iu
    )
    assert.deepStrictEqual(yield* fingerprint, before)
  })

  it.effect("makes a database role without login the owner of all tables and functions in the schema", function* () {
    assert.deepStrictEqual(
      yield* Rows.all(
        { name: Schema.String, owner: Schema.String },
        (sql) => sql`SELECT c.relname AS name, c.relowner::regrole::text AS owner FROM pg_class c
            WHERE c.relnamespace = 'vatproof'::regnamespace AND c.relkind IN ('r', 'p') AND c.relowner::regrole::text <> 'vatproof_owner'
          UNION ALL SELECT p.proname, p.proowner::regrole::text FROM pg_proc p
            WHERE p.pronamespace = 'vatproof'::regnamespace AND p.proowner::regrole::text <> 'vatproof_owner'
          UNION ALL SELECT rolname, 'may log in' FROM pg_roles WHERE rolname LIKE 'vatproof\\_%' AND rolcanlogin`
      ),
      []
    )
  })

  it.effect("lets the service's database role append further events", function* () {
    const sql = yield* SqlClient.SqlClient
    const who = SqlSchema.findOne({
      Request: Schema.Void,
      Result: Schema.Struct({ name: Schema.String }),
      execute: () => sql`SELECT current_user AS name`
    })
    assert.strictEqual((yield* who(undefined)).name, "vatproof_service")
    const first = yield* append
    assert.strictEqual((yield* append).position, first.position + 1)
  })
})

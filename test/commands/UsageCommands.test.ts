import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { command, commandJson } from "#test/support/CommandLine.ts"
import { register, settings, showAccount, Usage } from "#test/support/Operations.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import * as RunningService from "#test/support/RunningService.ts"
import { schemaAttacks } from "#test/support/SchemaAttacks.ts"
import { tamper } from "#test/support/Tampering.ts"
import { assert, layer } from "#test/support/Test.ts"

const Check = Schema.Struct({ ok: Schema.Boolean, meters: Schema.Int, used: Schema.Int, units: Schema.Int })

layer(RunningService.layer(settings), { excludeTestServices: true })("vatproof", (it) => {
  it.effect("`usage show` reports the usage of keys and anonymous callers", function* () {
    const { validate } = yield* RunningService.RunningService
    const key = yield* register("busy@example.com")
    yield* Effect.repeat(validate("ATU12345678", { key }), { times: 28 })
    yield* validate("ATU12345678", { from: "192.0.2.77" })
    const all = yield* commandJson(Usage, "usage", "show")
    assert.deepStrictEqual(all.keys[0], { ...all.keys[0], prefix: key.slice(0, 12), used: 29, limit: 100 })
    assert.deepStrictEqual(all.anonymous, { addresses: 1, used: 1 })
    const one = yield* commandJson(Usage, "usage", "show", "busy@example.com", "--month", "2020-01")
    assert.deepStrictEqual(
      one.keys.map(({ used }) => used),
      [0]
    )
    const { output } = yield* command("usage", "show", "busy@example.com")
    assert.match(output, /busy@example\.com +free +29 +100 +29 %/u)
  })

  it.effect("`usage check` reports the meters whose usage differs from the events", function* () {
    const sql = yield* SqlClient.SqlClient
    const { validate } = yield* RunningService.RunningService
    const key = yield* register("check@example.com")
    yield* validate("ATU12345678", { key })
    const good = yield* commandJson(Check, "usage", "check")
    assert.deepStrictEqual([good.ok, good.used], [true, good.units])
    assert.isNull((yield* command("usage", "check")).failure)

    const { keys } = yield* showAccount("check@example.com")
    const meter = `key-${keys[0]?.key_id}/%`
    yield* sql`UPDATE vatproof.meters SET used = used + 2 WHERE meter_id LIKE ${meter}`
    yield* sql`INSERT INTO vatproof.meters (log_id, meter_id, used) VALUES (0, 'key-of-stranger/2026-01', 7)`
    const bad = yield* command("usage", "check")
    assert.strictEqual(bad.failure?.replace(/\d+/gu, "n"), "n of n meters differ from the n events of the log")
    assert.match(bad.failure ?? "", /^2 of /u)
    assert.match(bad.output, /key-of-stranger\/2026-01 +7 +0 +7 +0 {2}-/u)
    assert.match(bad.output, new RegExp(`key-${keys[0]?.key_id}/[-\\d]+ +3 +1 +2 +1 {2}(\\d+) to \\1`, "u"))
    assert.isFalse((yield* commandJson(Check, "usage", "check")).ok)
  })

  it.effect("`usage check` is not content with meters that match if a trigger makes calls free", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`DELETE FROM vatproof.meters WHERE meter_id = 'key-of-stranger/2026-01'`
    yield* sql`UPDATE vatproof.meters SET used = used - 2 WHERE used = 3`
    const statements = schemaAttacks.filter(({ name }) => name === "a trigger that makes calls free").map((one) => one.statement)
    yield* tamper(...statements)
    const { failure, output } = yield* command("usage", "check")
    assert.match(output, /^table vatproof\.events: it has "CREATE TRIGGER free BEFORE INSERT /mu)
    assert.match(failure ?? "", /^The schema differs from this version's/u)
    assert.isFalse((yield* commandJson(Check, "usage", "check")).ok)
  })

  it.effect("`migrate` restores what was changed in the schema, and names what an administrator must revert", function* () {
    yield* tamper(
      "CREATE OR REPLACE FUNCTION vatproof.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
      "ALTER TABLE vatproof.api_keys DISABLE TRIGGER identity_epoch",
      "DROP TRIGGER identity_epoch_deleted ON vatproof.api_keys",
      "ALTER FUNCTION vatproof.item_id OWNER TO CURRENT_USER",
      "REVOKE SELECT ON vatproof.meters FROM vatproof_service",
      "DROP EVENT TRIGGER vatproof_refuse_drop",
      "CREATE OR REPLACE VIEW vatproof.event_index_segments AS SELECT 0::smallint AS log_id, 7 AS segment"
    )
    const { output, remarks } = yield* command("migrate")
    const restored = [...output.matchAll(/^Restored, because it differed from this version's: (\w+(?: trigger)? [\w.]+)/gmu)]
    assert.sameMembers(
      restored.map(([, object]) => object),
      [
        "function vatproof.refuse_change",
        "table vatproof.api_keys",
        "function vatproof.item_id",
        "table vatproof.meters",
        "event trigger vatproof_refuse_drop",
        "view vatproof.event_index_segments"
      ]
    )
    assert.match(remarks, /^Still differs .*: table vatproof\.events: it has "CREATE TRIGGER free /mu)
    yield* MigratedDatabase.execute("DROP TRIGGER free ON vatproof.events")
    assert.strictEqual((yield* command("migrate")).remarks, "")
    assert.isNull((yield* command("usage", "check")).failure)
  })
})

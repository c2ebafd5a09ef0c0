/** An audit finds a superuser's change of any column of any projection, and reports the table, the row's key and the position. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { logCatalogue } from "#app/layers/LogCatalogue.ts"
import * as Findings from "#events/log/verify/Findings.ts"
import * as ProjectionAudit from "#events/log/verify/ProjectionAudit.ts"
import { Projections } from "#events/log/projections/Projections.ts"
import * as EventIndex from "#events/audit/EventIndex.ts"
import { tableProjections } from "#events/ProjectionCatalogue.ts"
import * as SourceHours from "#events/vat/SourceHours.ts"
import * as Histories from "#test/support/Histories.ts"
import * as MigratedDatabase from "#test/support/MigratedDatabase.ts"
import { assert, layer } from "#test/support/Test.ts"

const schema = readFileSync(join(import.meta.dirname, "../../../../migrations/schema.txt"), "utf8")
const names = tableProjections.map(({ name }) => name)
const kept = [...names, "logs", "projections"]

const remember = Effect.forEach(kept, (name) =>
  MigratedDatabase.execute(`CREATE TABLE public.kept_${name} AS TABLE vatproof.${name}`)
)
const restore = (name: string) =>
  MigratedDatabase.execute(
    `DO $$ BEGIN DELETE FROM vatproof.${name}; INSERT INTO vatproof.${name} TABLE public.kept_${name}; END $$`
  )

const audit = Effect.gen(function* () {
  const findings = Findings.make()
  yield* ProjectionAudit.run(findings)
  return findings.list()
})

/** SQL expressions for another value of the columns that have a constraint, by name. `byType` is for all other columns. */
const others: Readonly<Record<string, string>> = {
  state: "CASE state WHEN 'final' THEN 'expired' ELSE 'final' END",
  plan: "CASE plan WHEN 'free' THEN 'enterprise' ELSE 'free' END",
  log_id: "1"
}
const byType = (column: string): string =>
  `CASE pg_typeof(${column})::text WHEN 'text' THEN coalesce(${column}::text, '') || 'x' WHEN 'bytea' THEN '\\x' || repeat('ee', 32)
    WHEN 'uuid' THEN '019371c0-5f00-7000-8000-ffffffffffff' WHEN 'bigint' THEN (coalesce(${column}::text, '0')::numeric + 1000)::text WHEN 'integer' THEN (coalesce(${column}::text, '0')::int + 1000)::text
    ELSE '2031-01-01T00:00:00Z' END`

/** Returns the statement that changes a column of the third row. */
const change = (table: string, column: string) => {
  const row = `ctid = (SELECT ctid FROM vatproof.${table} ORDER BY ${table}::text OFFSET 2 LIMIT 1)`
  const own = others[column]
  if (own !== undefined) return `UPDATE vatproof.${table} SET ${column} = ${own} WHERE ${row}`
  return `DO $$ DECLARE value text; BEGIN SELECT ${byType(column)} INTO STRICT value FROM vatproof.${table} WHERE ${row};
    EXECUTE format('UPDATE vatproof.${table} SET ${column} = %L WHERE ${row.replaceAll("'", "''")}', value); END $$`
}

/** Columns of a task's schedule, which do not derive from the log. */
const schedule: ReadonlySet<string> = new Set(["due_at", "claim", "attempts", "attempted_at", "failure"])

/** Returns the names of the columns of a table that derive from the log. */
const columnsOf = (name: string) => {
  const [, lines = ""] = new RegExp(`^table vatproof\\.${name}\\b.*\\n((?:  .*\\n)+)`, "mu").exec(schema) ?? []
  return [...lines.matchAll(/^  (\w+) (?:bigint|bytea|integer|smallint|text|timestamp|uuid)\b/gmu)]
    .map(([, column = ""]) => column)
    .filter((column) => name !== "tasks" || !schedule.has(column))
}

type Change = readonly [table: string, name: string, statement: string]

/** Returns the changes of a table that an audit must find: one of each column, and the removal of a row. */
const changesOf = (name: string): ReadonlyArray<Change> => [
  ...columnsOf(name).map((column): Change => [name, `${column} of ${name}`, change(name, column)]),
  [
    name,
    `a removed row of ${name}`,
    `DELETE FROM vatproof.${name} WHERE ctid = (SELECT ctid FROM vatproof.${name} ORDER BY ${name}::text OFFSET 2 LIMIT 1)`
  ]
]

/** All changes in rounds. A round changes each table at most once, so that one comparison covers several changes. */
const rounds = Array.from({ length: Math.max(...names.map((name) => changesOf(name).length)) }, (_, round) =>
  names.flatMap((name) => changesOf(name).slice(round, round + 1))
)

const further: ReadonlyArray<Change> = [
  ["logs", "a wrong next position of the log", "UPDATE vatproof.logs SET next_position = next_position + 1"],
  [
    "logs",
    "a wrong time of the log's newest event",
    "UPDATE vatproof.logs SET last_recorded_at = last_recorded_at + interval '1 microsecond'"
  ],
  ["logs", "a row of a second log", "INSERT INTO vatproof.logs (log_id) VALUES (1)"],
  ["projections", "a projection with an unknown version", "UPDATE vatproof.projections SET version = 7 WHERE name = 'meters'"],
  [
    "projections",
    "a projection with a too high position",
    "UPDATE vatproof.projections SET position = 100000 WHERE name = 'event_index'"
  ],
  ["projections", "an unknown projection", "UPDATE vatproof.projections SET name = 'other' WHERE name = 'meters'"],
  ["projections", "a missing projection", "DELETE FROM vatproof.projections WHERE name = 'meters'"],
  [
    "projections",
    "an inline projection with a position, which only asynchronous projections have",
    "UPDATE vatproof.projections SET position = 3 WHERE name = 'meters'"
  ],
  ["listed", "a surplus row in `listed`", "INSERT INTO vatproof.listed (log_id, list, position) VALUES (0, 'receipts-x', 5)"],
  ["projections", "a projection of another log", "UPDATE vatproof.projections SET log_id = 1 WHERE name = 'meters'"],
  [
    "event_index",
    "a projection with a too low position",
    "UPDATE vatproof.projections SET position = 3 WHERE name = 'event_index'"
  ],
  [
    "source_hours",
    "sums that the projection has not reached",
    "UPDATE vatproof.projections SET position = 3 WHERE name = 'source_hours'"
  ],
  [
    "source_hours",
    "a surplus row in `source_hours`",
    "INSERT INTO vatproof.source_hours VALUES (0, now(), 'XX', 'vies', 'answered', 1, 1, 1, 0)"
  ]
]

/** Runs the asynchronous projection once. A background runner would repair the tables that tests change. */
const followLog = Effect.flatMap(Projections, ({ upToDate }) =>
  Effect.forEach([EventIndex.eventIndex, SourceHours.sourceHours], upToDate)
).pipe(Effect.provide(Projections.layer([EventIndex.definition, SourceHours.definition])))

const history = [0, 1, 2, 3].flatMap((who) =>
  [0, 1, 2, 3].flatMap((what) => Histories.kinds.map((kind) => ({ kind, who, what })))
)

layer(Layer.merge(MigratedDatabase.layer, logCatalogue), { excludeTestServices: true })(
  "The comparison of the projections with the events",
  (it) => {
    const happened = new Set<string>()

    it.effect("reports nothing for unchanged tables", function* () {
      yield* Histories.append(happened, history)
      yield* followLog
      assert.deepStrictEqual(yield* audit, [])
      yield* remember
    })

    for (const [round, changes] of rounds.entries()) {
      it.effect(
        `detects a changed column or a removed row in several tables at once (round ${round + 1} of ${rounds.length})`,
        function* () {
          yield* Effect.forEach(changes, ([, , statement]) => MigratedDatabase.execute(statement))
          const found = yield* audit
          yield* Effect.forEach(["projections", ...changes.map(([table]) => table)], restore)
          for (const [table, name] of changes) {
            const ofTable = found.filter((finding) => finding.table === table)
            assert.include([1, 2], ofTable.length, `${name}: ${JSON.stringify(ofTable)}`)
            assert.isTrue(
              ofTable.some(({ key, position }) => key !== "" && position !== null),
              name
            )
          }
        }
      )
    }

    for (const [table, name, statement] of further) {
      it.effect(`detects ${name}`, function* () {
        yield* MigratedDatabase.execute(statement)
        const found = yield* audit
        yield* Effect.forEach(new Set([table, "projections"]), restore)
        assert.isNotEmpty(found)
        const [first] = found.filter((finding) => finding.table === table)
        assert.isTrue(first?.key !== "" && (first?.position !== null || table === "projections"), JSON.stringify(found))
        assert.isTrue(
          found.every((finding) => finding.table === table || table === "projections"),
          JSON.stringify(found)
        )
      })
    }

    it.effect("lists a limited number of wrong rows of a table, and reports how many more rows are wrong", function* () {
      yield* MigratedDatabase.execute("INSERT INTO vatproof.listed SELECT 0, 'receipts-x', i FROM generate_series(1, 250) i")
      const found = yield* audit
      yield* restore("listed")
      assert.strictEqual(found.at(-1)?.message, "listed: 50 more rows are wrong")
    })

    it.effect("reports nothing while a service appends events", function* () {
      const busy = Effect.forever(Histories.append(happened, [{ kind: "repeated", who: 1, what: 1 }]))
      assert.deepStrictEqual(yield* Effect.raceFirst(audit, busy), [])
    })

    it.effect("reports a missing table, and compares all other tables", function* () {
      yield* MigratedDatabase.execute("DROP TABLE vatproof.listed")
      yield* MigratedDatabase.execute("DELETE FROM vatproof.auditors")
      const found = new Set((yield* audit).map(({ table }) => table))
      assert.deepStrictEqual([...found], ["listed", "auditors"])
    })
  }
)

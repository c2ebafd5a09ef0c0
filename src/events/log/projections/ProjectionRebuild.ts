/**
 * Corrects the projections from the events, while the service runs: inserts missing rows, updates different rows, deletes surplus rows.
 * Needs the rights of the tables' owner, which only the operator has.
 *
 * Inline projections are rebuilt as temporary tables, compared, and corrected under the lock of the log. All of this is one transaction,
 * so a killed rebuild changes nothing. An asynchronous projection is corrected range by range. If its rows are sums, it is rebuilt as a
 * temporary table and corrected under the lock of its row in vatproof.projections.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Changes, LogGap, type Projection } from "#events/log/projections/Projection.ts"
import type { ProjectionDefinition } from "#events/log/projections/Projections.ts"
import { differences, hasRowsOfEvents, type TableProjection, TableProjections } from "#events/log/projections/TableProjection.ts"

/** Events per step. */
const stepSize = 50_000
/** Maximum number of events that are applied under the lock of the log or of a projection. */
const maxLocked = 5_000

/** Numbers of the rows that a rebuild corrected in the projection `name`. */
export interface Rebuilt extends Changes {
  readonly name: string
}

type Progress = (applied: number, head: number) => Effect.Effect<void>

/** Rebuilds the named projections. Calls `progress` after each step with the number of applied events and the number of all events. */
export const run = Effect.fn("ProjectionRebuild.run")(
  function* (names: ReadonlySet<string>, definitions: ReadonlyArray<ProjectionDefinition>, progress: Progress) {
    const wanted = (yield* TableProjections).filter(({ name }) => names.has(name))
    const inline = wanted.filter(({ kind }) => kind === "inline")
    const projections = (yield* Effect.all(definitions)).filter(({ name }) => names.has(name))
    const counted = makeSum(progress)
    // Rebuilds inline and asynchronous projections concurrently, because each of the two rebuilds occupies only one CPU of the
    // database.
    const rebuilt = yield* Effect.all(
      [
        inline.length === 0 ? Effect.succeed([]) : rebuildInline(inline, counted()),
        Effect.forEach(projections, (projection) => {
          const table = wanted.find(({ name }) => name === projection.name)
          return table === undefined || hasRowsOfEvents(table)
            ? rebuildFollowing(projection, counted())
            : rebuildSums(projection, table, counted())
        })
      ],
      { concurrency: 2 }
    )
    return wanted.flatMap(({ name }) => rebuilt.flat().filter((one) => one.name === name))
  },
  Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die)
)

/** Creates a function that returns a progress callback for each concurrent part. `progress` receives the sums of all parts. */
const makeSum = (progress: Progress) => {
  const parts: Array<{ readonly applied: number; readonly head: number }> = []
  const total = (key: "applied" | "head") => parts.reduce((sum, part) => sum + part[key], 0)
  return (): Progress => {
    const index = parts.push({ applied: 0, head: 0 }) - 1
    return (applied, head) => {
      parts[index] = { applied, head }
      return progress(total("applied"), total("head"))
    }
  }
}

const makeReads = Effect.map(SqlClient.SqlClient, (sql) => {
  const findHead = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt }),
    execute: () => sql`SELECT coalesce(max(position) + 1, 0) AS head FROM vatproof.events WHERE log_id = ${logId}`
  })
  const countEvents = SqlSchema.findOne({
    Request: Schema.Struct({ from: Schema.Int, to: Schema.Int }),
    Result: Schema.Struct({ found: Schema.BigInt }),
    execute: ({ from, to }) => sql`SELECT count(*) AS found FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to}`
  })
  return {
    head: Effect.map(findHead(undefined), ({ head }) => Number(head)),
    /** Fails with LogGap if an event of the range is missing. */
    requireEvents: Effect.fnUntraced(function* (projection: string, from: number, to: number) {
      const found = Number((yield* countEvents({ from, to })).found)
      if (found !== to - from) return yield* new LogGap({ projection, from, to, found })
    })
  }
})

/** Creates an empty temporary table like a table of the schema vatproof. */
const createLike = (sql: SqlClient.SqlClient, { name }: TableProjection) => {
  const made = sql.literal(name)
  return sql`CREATE TEMPORARY TABLE ${made} (LIKE vatproof.${made} INCLUDING ALL) ON COMMIT DROP`.unprepared
}

/** Applies the events up to `end`, which moves, and the last ones after `lock`, which returns the end that it holds. Returns this end. */
const applyAll = Effect.fnUntraced(function* <A, E1, R1, E2, R2>(
  parts: {
    readonly name: string
    readonly end: Effect.Effect<number, E1, R1>
    readonly lock: Effect.Effect<number, E1, R1>
    readonly apply: (from: number, to: number) => Effect.Effect<A, E2, R2>
  },
  progress: Progress
) {
  const reads = yield* makeReads
  let applied = 0
  const applyTo = Effect.fnUntraced(function* (end: number) {
    while (applied < end) {
      const to = Math.min(end, applied + stepSize)
      yield* reads.requireEvents(parts.name, applied, to)
      yield* parts.apply(applied, to)
      applied = to
      yield* progress(applied, end)
    }
  })
  for (let end = yield* parts.end; end - applied > maxLocked; end = yield* parts.end) yield* applyTo(end)
  const end = yield* parts.lock
  yield* applyTo(end)
  return end
})

const rebuildInline = (wanted: ReadonlyArray<TableProjection>, progress: Progress) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.gen(function* () {
      const { head } = yield* makeReads
      // vatproof.project then fills the temporary tables and not the tables in the schema vatproof, because temporary tables come first
      // in the search path.
      for (const table of yield* TableProjections) if (table.kind === "inline") yield* createLike(sql, table)
      const apply = (from: number, to: number) =>
        sql`SELECT vatproof.project(${logId}::smallint, ${from}::bigint, ${to}::bigint, false)`
      const lock = Effect.andThen(sql`SELECT next_position FROM vatproof.logs WHERE log_id = ${logId} FOR UPDATE`, head)
      yield* applyAll({ name: "inline", end: head, lock, apply }, progress)
      yield* putLogRight(sql)
      return yield* Effect.forEach(wanted, putRight(sql, null))
    }).pipe(sql.withTransaction)
  )

/** Corrects an asynchronous table of sums, up to the position of its projection. */
const rebuildSums = Effect.fnUntraced(function* (projection: Projection, table: TableProjection, progress: Progress) {
  const sql = yield* SqlClient.SqlClient
  const { find, hold } = (yield* makePlace)(projection)
  yield* sql.withTransaction(hold)
  return yield* Effect.gen(function* () {
    yield* createLike(sql, table)
    const apply = (from: number, to: number) => projection.apply({ from, to }, "pg_temp")
    const end = yield* applyAll({ name: table.name, end: find, lock: hold, apply }, progress)
    return yield* putRight(sql, end)(table)
  }).pipe(sql.withTransaction)
})

/** Corrects the columns of the log's row in vatproof.logs that derive from the events. */
const putLogRight = (
  sql: SqlClient.SqlClient
) => sql`UPDATE vatproof.logs l SET next_position = e.head, last_recorded_at = e.recorded_at
  FROM (SELECT coalesce(max(position) + 1, 0) AS head, coalesce(max(recorded_at), '-infinity') AS recorded_at
    FROM vatproof.events WHERE log_id = ${logId}) e
  WHERE l.log_id = ${logId} AND (l.next_position, l.last_recorded_at) IS DISTINCT FROM (e.head, e.recorded_at)`

/**
 * Corrects a table from the temporary table of the same name. A wrong row is deleted before its correct form is inserted, because two
 * wrong rows may have swapped values in a unique column. `position` is the position of an asynchronous projection.
 */
const putRight = (sql: SqlClient.SqlClient, position: number | null) =>
  Effect.fnUntraced(function* (table: TableProjection) {
    const { columns, key, name, version } = table
    const wrong = `pg_temp.wrong_${name}`
    const all = [...key, ...columns].join(", ")
    const isSame = key.map((column) => `w.${column} = t.${column}`).join(" AND ")
    yield* sql.unsafe(
      `CREATE TEMPORARY TABLE wrong_${name} ON COMMIT DROP AS ${differences(table, `pg_temp.${name}`, `vatproof.${name}`)}`
    ).unprepared
    yield* sql.unsafe(`DELETE FROM vatproof.${name} t USING ${wrong} w WHERE ${isSame} AND w.wrong <> 'missing'`).unprepared
    yield* sql.unsafe(`INSERT INTO vatproof.${name} (${all}) SELECT ${[...key, ...columns].map((column) => `t.${column}`).join(", ")}
      FROM pg_temp.${name} t JOIN ${wrong} w ON ${isSame} AND w.wrong <> 'surplus'`).unprepared
    const count = SqlSchema.findOne({
      Request: Schema.Void,
      Result: Changes,
      execute: () =>
        sql.unsafe(`SELECT count(*) FILTER (WHERE wrong = 'missing') AS missing, count(*) FILTER (WHERE wrong = 'surplus') AS surplus,
        count(*) FILTER (WHERE wrong = 'different') AS different FROM ${wrong}`).unprepared
    })
    yield* sql`INSERT INTO vatproof.projections AS p (log_id, name, version, position) VALUES (${logId}, ${name}, ${version}, ${position})
      ON CONFLICT (log_id, name) DO UPDATE SET version = excluded.version, position = excluded.position`
    return { name, ...(yield* count(undefined)) } satisfies Rebuilt
  })

/** Creates the statements that lock and read the position of an asynchronous projection. */
const makePlace = Effect.map(SqlClient.SqlClient, (sql) => ({ name, version }: Projection) => {
  const Result = Schema.Struct({ position: Schema.BigInt })
  // Locks the row of the projection in a separate statement. A statement that waits for a lock sees no event that is appended during
  // the wait; the next statement sees it.
  const lock = sql`INSERT INTO vatproof.projections AS p (log_id, name, version, position) VALUES (${logId}, ${name}, ${version}, 0)
    ON CONFLICT (log_id, name) DO UPDATE SET version = excluded.version`
  const setPosition = SqlSchema.findOne({
    Request: Schema.Void,
    Result,
    // Reduces a wrong position that exceeds the head of the log.
    execute: () => sql`UPDATE vatproof.projections p SET position = least(coalesce(p.position, 0),
        (SELECT coalesce(max(e.position) + 1, 0) FROM vatproof.events e WHERE e.log_id = ${logId}))
      WHERE p.log_id = ${logId} AND p.name = ${name} RETURNING position`
  })
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result,
    execute: () => sql`SELECT position FROM vatproof.projections WHERE log_id = ${logId} AND name = ${name}`
  })
  const number = Effect.map(({ position }: typeof Result.Type) => Number(position))
  return { hold: Effect.andThen(lock, setPosition(undefined)).pipe(number), find: number(find(undefined)) }
})

/**
 * Corrects an asynchronous table range by range, up to the position of its projection. Each range is a transaction that locks the
 * projection's row, so that no replica advances the table meanwhile.
 */
const rebuildFollowing = Effect.fnUntraced(function* (projection: Projection, progress: Progress) {
  const { apply, name } = projection
  const sql = yield* SqlClient.SqlClient
  const reads = yield* makeReads
  const { hold } = (yield* makePlace)(projection)
  const removeSurplus = SqlSchema.findOne({
    Request: Schema.Int,
    Result: Schema.Struct({ surplus: Schema.BigInt }),
    execute: (end) => sql`WITH removed AS (DELETE FROM vatproof.${sql.literal(name)}
        WHERE log_id <> ${logId} OR position < 0 OR position >= ${end} RETURNING 1)
      SELECT count(*) AS surplus FROM removed`
  })
  const total = { missing: 0, different: 0 }
  const first = yield* Effect.flatMap(hold, removeSurplus).pipe(sql.withTransaction)
  const end = yield* sql.withTransaction(hold)
  for (let from = 0; from < end; from += stepSize) {
    const to = Math.min(end, from + stepSize)
    const changes = yield* Effect.andThen(
      hold,
      Effect.andThen(reads.requireEvents(name, from, to), apply({ from, to }, "vatproof"))
    ).pipe(sql.withTransaction)
    total.missing += changes.missing
    total.different += changes.different
    yield* progress(to, end)
  }
  return { name, missing: total.missing, surplus: Number(first.surplus), different: total.different } satisfies Rebuilt
})

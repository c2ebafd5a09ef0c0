/**
 * Corrects the projections from the events, while the service runs: inserts missing rows, updates different rows, deletes surplus rows.
 * Needs the rights of the tables' owner, which only the operator has.
 *
 * Inline projections are rebuilt as temporary tables, compared, and corrected under the lock of the log. All of this is one transaction,
 * so a killed rebuild changes nothing. An asynchronous projection is corrected range by range. If its rows are sums, it is rebuilt as a
 * temporary table too, and corrected under the lock of its position.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Changes, LogGap, type Projection, type ProjectionBatch } from "#events/log/projections/Projection.ts"
import type { ProjectionDefinition } from "#events/log/projections/Projections.ts"
import { differences, hasRowsOfEvents, type TableProjection, TableProjections } from "#events/log/projections/TableProjection.ts"

/** Events per step. */
const stepSize = 50_000
/** Maximum number of events that are applied under the lock of the log. */
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
          const sums = wanted.find((table) => table.name === projection.name && !hasRowsOfEvents(table))
          return sums === undefined ? rebuildFollowing(projection, counted()) : rebuildSums(projection, sums, counted())
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
    /** Calls `apply` for consecutive ranges of events. Fails with LogGap if an event of a range is missing. */
    inRanges: Effect.fnUntraced(function* <A, E, R>(
      projection: string,
      { from: start, to: end }: ProjectionBatch,
      apply: (batch: ProjectionBatch) => Effect.Effect<A, E, R>,
      progress: Progress
    ) {
      for (let from = start; from < end; from += stepSize) {
        const to = Math.min(end, from + stepSize)
        const found = Number((yield* countEvents({ from, to })).found)
        if (found !== to - from) return yield* new LogGap({ projection, from, to, found })
        yield* apply({ from, to })
        yield* progress(to, end)
      }
    })
  }
})

/** Creates an empty temporary table like the table of the schema vatproof. */
const createTemporary = (sql: SqlClient.SqlClient, name: string) => {
  const made = sql.literal(name)
  return sql`CREATE TEMPORARY TABLE ${made} (LIKE vatproof.${made} INCLUDING ALL) ON COMMIT DROP`.unprepared
}

const rebuildInline = (wanted: ReadonlyArray<TableProjection>, progress: Progress) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.gen(function* () {
      const reads = yield* makeReads
      // vatproof.project then fills the temporary table and not the table in the schema vatproof, because temporary tables come
      // first in the search path.
      for (const { kind, name } of yield* TableProjections) if (kind === "inline") yield* createTemporary(sql, name)
      const project = ({ from, to }: ProjectionBatch) =>
        sql`SELECT vatproof.project(${logId}::smallint, ${from}::bigint, ${to}::bigint, false)`
      let applied = 0
      const applyTo = Effect.fnUntraced(function* (head: number) {
        yield* reads.inRanges("inline", { from: applied, to: head }, project, progress)
        applied = head
      })
      for (let head = yield* reads.head; head - applied > maxLocked; head = yield* reads.head) yield* applyTo(head)
      yield* sql`SELECT next_position FROM vatproof.logs WHERE log_id = ${logId} FOR UPDATE`
      yield* applyTo(yield* reads.head)
      yield* putLogRight(sql)
      return yield* Effect.forEach(wanted, putRight(sql, null))
    }).pipe(sql.withTransaction)
  )

/** Corrects the columns of the log's row in vatproof.logs that derive from the events. */
const putLogRight = (
  sql: SqlClient.SqlClient
) => sql`UPDATE vatproof.logs l SET next_position = e.head, last_recorded_at = e.recorded_at
  FROM (SELECT coalesce(max(position) + 1, 0) AS head, coalesce(max(recorded_at), '-infinity') AS recorded_at
    FROM vatproof.events WHERE log_id = ${logId}) e
  WHERE l.log_id = ${logId} AND (l.next_position, l.last_recorded_at) IS DISTINCT FROM (e.head, e.recorded_at)`

/**
 * Corrects a table from the temporary table of the same name. A wrong row is deleted before its correct form is inserted, because two
 * wrong rows may have swapped values in a unique column. Sets the `position` of the projection: null for an inline one.
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

/** Creates an effect that locks the position of an asynchronous projection and returns it. */
const makeHold = Effect.fnUntraced(function* ({ name, version }: Projection) {
  const sql = yield* SqlClient.SqlClient
  // Locks the row of the projection in a separate statement. A statement that waits for a lock sees no event that is appended during
  // the wait; the next statement sees it.
  const lock = sql`INSERT INTO vatproof.projections AS p (log_id, name, version, position) VALUES (${logId}, ${name}, ${version}, 0)
    ON CONFLICT (log_id, name) DO UPDATE SET version = excluded.version`
  const setPosition = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ position: Schema.BigInt }),
    // Reduces a wrong position that exceeds the head of the log.
    execute: () => sql`UPDATE vatproof.projections p SET position = least(coalesce(p.position, 0),
        (SELECT coalesce(max(e.position) + 1, 0) FROM vatproof.events e WHERE e.log_id = ${logId}))
      WHERE p.log_id = ${logId} AND p.name = ${name} RETURNING position`
  })
  return Effect.map(Effect.andThen(lock, setPosition(undefined)), ({ position }) => Number(position))
})

/**
 * Corrects an asynchronous table of sums, up to the position of its projection. No replica advances the table while the last events are
 * applied, which arrived during the rebuild.
 */
const rebuildSums = Effect.fnUntraced(function* (projection: Projection, table: TableProjection, progress: Progress) {
  const sql = yield* SqlClient.SqlClient
  const { inRanges } = yield* makeReads
  const hold = yield* makeHold(projection)
  const apply = (batch: ProjectionBatch) => projection.apply(batch, "pg_temp")
  const before = yield* sql.withTransaction(hold)
  return yield* Effect.gen(function* () {
    yield* createTemporary(sql, table.name)
    yield* inRanges(table.name, { from: 0, to: before }, apply, progress)
    const end = yield* hold
    yield* inRanges(table.name, { from: before, to: end }, apply, progress)
    return yield* putRight(sql, end)(table)
  }).pipe(sql.withTransaction)
})

/**
 * Corrects an asynchronous table range by range, up to the position of its projection. Each range is a transaction that locks the
 * projection's row, so that no replica advances the table meanwhile.
 */
const rebuildFollowing = Effect.fnUntraced(function* (projection: Projection, progress: Progress) {
  const { name } = projection
  const sql = yield* SqlClient.SqlClient
  const { inRanges } = yield* makeReads
  const hold = yield* makeHold(projection)
  const removeSurplus = SqlSchema.findOne({
    Request: Schema.Int,
    Result: Schema.Struct({ surplus: Schema.BigInt }),
    execute: (end) => sql`WITH removed AS (DELETE FROM vatproof.${sql.literal(name)}
        WHERE log_id <> ${logId} OR position < 0 OR position >= ${end} RETURNING 1)
      SELECT count(*) AS surplus FROM removed`
  })
  const total = { missing: 0, different: 0 }
  const first = yield* Effect.flatMap(hold, removeSurplus).pipe(sql.withTransaction)
  const apply = Effect.fnUntraced(function* (batch: ProjectionBatch) {
    yield* hold
    const changes = yield* projection.apply(batch, "vatproof")
    total.missing += changes.missing
    total.different += changes.different
  }, sql.withTransaction)
  yield* inRanges(name, { from: 0, to: yield* sql.withTransaction(hold) }, apply, progress)
  return { name, missing: total.missing, surplus: Number(first.surplus), different: total.different } satisfies Rebuilt
})

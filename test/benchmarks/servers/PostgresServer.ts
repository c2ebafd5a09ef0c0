/** The Postgres server of a benchmark run. All compared servers use it, each with a database of its own. */
import { PgConnection } from "@effect/sql-pg"
import { Context, Effect, FileSystem, Layer, Option, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import * as EmbeddedPostgres from "#infra/embedded-postgres/EmbeddedPostgres.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as ProcessorTime from "#test/benchmarks/ProcessorTime.ts"

/** The Postgres server does not wait for its disk, so the measured figures would be better than in production. */
export class NotDurable extends Schema.TaggedError<NotDurable>()("NotDurable", { settings: Schema.String }) {
  override get message() {
    return `This Postgres has ${this.settings} and can lose commits; turn these settings on`
  }
}

const Facts = Schema.Struct({
  version: Schema.String,
  backend: Schema.Int,
  fsync: Schema.String,
  synchronous_commit: Schema.String,
  full_page_writes: Schema.String,
  shared_buffers: Schema.String
})

const findFacts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Facts,
    execute: () => sql`SELECT current_setting('server_version') AS version, pg_backend_pid() AS backend,
      current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
      current_setting('full_page_writes') AS full_page_writes, current_setting('shared_buffers') AS shared_buffers`
  })
  const facts = yield* find(undefined)
  // If Postgres runs on another machine or in another container, a different local process may have its process id.
  const isHere = ProcessorTime.programOf(facts.backend).startsWith("postgres")
  return { ...facts, pid: isHere ? Option.some(ProcessorTime.parentOf(facts.backend)) : Option.none<number>() }
})

/**
 * Statements that fill the write-ahead log of a new server, so that it recycles segments of the log. A new 16 MB segment costs about
 * 50 ms, which would distort the measurement. The server keeps at most a gigabyte of segments (`max_wal_size`).
 */
const warmUpStatements = [
  "SELECT count(pg_logical_emit_message(false, 'work', repeat('x', 8000))) FROM generate_series(1, 134000)",
  "CHECKPOINT",
  "DO $$ BEGIN PERFORM pg_switch_wal(); END $$",
  "CHECKPOINT"
]

const make = Effect.fnUntraced(function* (configuredUrl: Option.Option<Redacted.Redacted>) {
  const fs = yield* FileSystem.FileSystem
  const url = Option.isSome(configuredUrl)
    ? configuredUrl.value
    : (yield* EmbeddedPostgres.make({ dir: yield* fs.makeTempDirectoryScoped({ prefix: "vatproof-bench-" }) })).url
  const facts = yield* Effect.provide(findFacts, Postgres.layerAdministrator({ url, maxConnections: 1 }), { local: true })
  const { fsync, full_page_writes, pid, shared_buffers, synchronous_commit, version } = facts
  if (fsync === "off" || synchronous_commit === "off" || full_page_writes === "off") {
    const settings = `fsync=${fsync}, synchronous_commit=${synchronous_commit}, full_page_writes=${full_page_writes}`
    return yield* new NotDurable({ settings })
  }
  const execute = (statement: string) =>
    Effect.scoped(Effect.flatMap(PgConnection.make({ url }), (connection) => connection.query(statement, [], false)))

  if (Option.isNone(configuredUrl)) yield* Effect.forEach(warmUpStatements, execute, { discard: true })

  return {
    description:
      `PostgreSQL ${version} (${Option.isSome(configuredUrl) ? "external" : "embedded"}), fsync ${fsync}, ` +
      `synchronous_commit ${synchronous_commit}, shared_buffers ${shared_buffers}`,
    /** Process id of the postmaster, if it runs on this machine. */
    pid,
    /** An empty database, which is dropped with the scope. */
    database: Effect.fnUntraced(function* (name: string) {
      const unique = `vatproof_bench_${process.pid}_${name}`
      yield* Effect.acquireRelease(
        // The C locale sorts in the same way on every server.
        execute(`CREATE DATABASE ${unique} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`),
        () => Effect.catchTag(execute(`DROP DATABASE IF EXISTS ${unique} WITH (FORCE)`), "SqlError", Effect.die)
      )
      const own = new URL(Redacted.value(url))
      own.pathname = `/${unique}`
      return Redacted.make(own.href)
    })
  }
})

export class PostgresServer extends Context.Service<PostgresServer, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/benchmarks/PostgresServer"
) {
  static readonly layer = (url: Option.Option<Redacted.Redacted>) => Layer.effect(PostgresServer, make(url))
}

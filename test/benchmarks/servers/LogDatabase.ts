/** A log in a database of its own, empty or filled with events that SQL generates. */
import { Console, Effect, Layer, type Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { createHash } from "node:crypto"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"

/** Connects as the owner of the tables. */
export const administrator = (url: Redacted.Redacted) => Postgres.layerAdministrator({ url, maxConnections: 2 })

export const make = Effect.fnUntraced(function* (name: string) {
  const { database } = yield* PostgresServer
  const url = yield* database(name)
  yield* Effect.provide(Migrations.run(), administrator(url), { local: true })
  return url
})

/** Provides the event store, with the connection settings of a service. */
export const store = (url: Redacted.Redacted) =>
  EventStore.layer.pipe(Layer.provide(NodeCrypto.layer), Layer.provideMerge(Postgres.layer({ url, maxConnections: 10 })))

/**
 * Size of a generated log. The first `vatIds` events are live answers, each for a different VAT ID; the rest are cache hits. Streams,
 * meters, cached answers, keys and accounts match the events.
 */
export interface Contents {
  readonly events: number
  readonly keys: number
  readonly vatIds: number
}

/** Events inserted by one statement, which bounds the memory of a transaction. */
const batchSize = 500_000

const findHead = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const find = SqlSchema.findOne({
    Request: Schema.Void,
    Result: Schema.Struct({ head: Schema.BigInt }),
    execute: () => sql`SELECT next_position AS head FROM vatproof.logs WHERE log_id = 0`
  })
  return Number((yield* find(undefined)).head)
})

const answer = {
  answered_at: "2026-11-21T09:00:00.000Z",
  code: "VALID",
  consultation_number: null,
  source: "vies",
  valid: true,
  valid_from: null,
  valid_until: null
}

/** Personal document of an answer, with its evidence: about 1 kB. */
const document = JSON.stringify({
  company_address: "Musterstrasse 22\n12345 musterort",
  company_name: "Musterhaus GmbH & Co KG",
  evidence: { http_status: 200, request: "x".repeat(120), response: "y".repeat(420), response_sha256: "0".repeat(64) },
  salt: "0".repeat(32)
})

/** Data of the event of a live answer. `@` stands for the VAT ID. */
const liveAnswer = JSON.stringify({
  answer,
  answer_position: null,
  answered_at: "2026-11-21T09:00:00.000Z",
  attempts: [],
  force_live: false,
  personal_sha256: createHash("sha256").update(document).digest("hex"),
  requester_vat_id: null,
  served: "live",
  source: "vies",
  valid: true,
  vat_id: "@"
})

/** The answer of `liveAnswer` as the table `latest` stores it. */
const cachedAnswer = JSON.stringify({
  source: answer.source,
  valid: answer.valid,
  answered_at: answer.answered_at,
  company_name: "Musterhaus GmbH & Co KG",
  company_address: "Musterstrasse 22\n12345 musterort"
})

/** Data of the event of a cache hit. `@` stands for the VAT ID, and `#` for the position of the live answer. */
const cacheHit =
  '{"answer":null,"answer_position":#,"answered_at":"2026-11-21T09:00:00.000Z","attempts":[],"force_live":false,' +
  '"requester_vat_id":null,"served":"cache","source":"vies","valid":true,"vat_id":"@"}'

/** Inserts the events. The first `eventsPerKey` events belong to the first key, the next ones to the second key, and so on. */
const fillEvents = Effect.fnUntraced(function* (from: number, { events, keys, vatIds }: Contents) {
  const sql = yield* SqlClient.SqlClient
  const eventsPerKey = Math.ceil(events / keys)
  for (let start = 0; start < events; start += batchSize) {
    const end = Math.min(events, start + batchSize)
    yield* sql`INSERT INTO vatproof.events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at,
        recorded_at, correlation_id, trace_id, meter_id, units, data, metadata)
      SELECT 0, p, 'key-' || k, i % ${eventsPerKey}::int + 1, ('0190' || lpad(to_hex(p), 28, '0'))::uuid, 'VatIdVerified', 1, now(), now(),
        ('0191' || lpad(to_hex(p), 28, '0'))::uuid, decode(md5(p::text), 'hex'), 'key-' || k || '-2026-11', 1,
        CASE WHEN i < ${vatIds}::int THEN replace(${liveAnswer}, '@', v)
          ELSE replace(replace(${cacheHit}, '@', v), '#', (${from}::bigint + i % ${vatIds}::int)::text) END,
        '{"request_id":"' || ('0192' || lpad(to_hex(p), 28, '0'))::uuid || '"}'
      FROM generate_series(${start}::int, ${end - 1}::int) AS i,
        LATERAL (SELECT ${from}::bigint + i AS p, ${keyIdOf(sql, from, `(i / ${eventsPerKey})`)} AS k,
          'ATU2' || lpad((i % ${vatIds}::int)::text, 7, '0') AS v) AS made`
    yield* sql`UPDATE vatproof.logs SET next_position = ${from + end}::bigint, last_recorded_at = now()`
    if (events > batchSize) yield* Console.log(`  ${end} of ${events} events generated`)
  }
})

/** Returns the SQL expression of a key's id. It depends on `from`, so that each fill of a log has different keys. */
const keyIdOf = (sql: SqlClient.SqlClient, from: number, index: string) => sql.literal(`md5('key ${from} ' || ${index})::uuid`)

const fillTables = Effect.fnUntraced(function* (from: number, { events, keys, vatIds }: Contents) {
  const sql = yield* SqlClient.SqlClient
  const eventsPerKey = Math.ceil(events / keys)
  const size = sql`least(${eventsPerKey}::int, ${events}::int - k * ${eventsPerKey}::int)`
  const id = keyIdOf(sql, from, "k")
  const series = sql`generate_series(0, ${Math.ceil(events / eventsPerKey) - 1}::int) AS k`
  yield* sql`INSERT INTO vatproof.streams (log_id, stream_id, version, first_position, last_position)
    SELECT 0, 'key-' || ${id}, ${size}, ${from}::bigint + k * ${eventsPerKey}::int, ${from}::bigint + k * ${eventsPerKey}::int + ${size} - 1 FROM ${series}`
  yield* sql`INSERT INTO vatproof.meters (log_id, meter_id, used) SELECT 0, 'key-' || ${id} || '-2026-11', ${size} FROM ${series}`
  yield* sql`INSERT INTO vatproof.accounts (account_id, plan, created_at) SELECT ${id}, 'free', now() FROM ${series}`
  yield* sql`INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
    SELECT ${id}, ${id}, sha256(${id}::text::bytea), 'svc_live_' || left(md5(k::text), 3), now() FROM ${series}`
  yield* sql`INSERT INTO vatproof.personal_documents (log_id, position, document, retain_until)
    SELECT 0, ${from}::bigint + i, ${document}, now() + interval '10 years' FROM generate_series(0, ${vatIds - 1}::int) AS i`
  yield* sql`INSERT INTO vatproof.latest (log_id, key, position, as_of, answered_at, answer)
    SELECT 0, 'answer-ATU2' || lpad(i::text, 7, '0'), ${from}::bigint + i, ${from}::bigint + i, ${answer.answered_at}::timestamptz, ${cachedAnswer}
    FROM generate_series(0, ${vatIds - 1}::int) AS i
    ON CONFLICT (log_id, key) DO UPDATE SET position = excluded.position, as_of = excluded.as_of`
})

/** Runs VACUUM, so that autovacuum has no work during a measurement. */
export const vacuum = (url: Redacted.Redacted) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`VACUUM (ANALYZE)`).pipe(Effect.provide(administrator(url), { local: true }))

/** Adds events at the end of the log. Requires that no other writer is active. */
export const fill = (url: Redacted.Redacted, contents: Contents) =>
  Effect.gen(function* () {
    const from = yield* findHead
    yield* fillEvents(from, contents)
    yield* fillTables(from, contents)
    yield* vacuum(url)
    return from + contents.events
  }).pipe(Effect.provide(administrator(url), { local: true }))

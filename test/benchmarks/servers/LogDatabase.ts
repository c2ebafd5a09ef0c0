/** A log in a database of its own: empty, or with as many events as wanted, which are made up by the database itself. */
import { Console, Effect, Layer, type Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { createHash } from "node:crypto"
import { EventStore } from "#events/store/EventStore.ts"
import * as Migrations from "#infra/postgres/Migrations.ts"
import * as Postgres from "#infra/postgres/Postgres.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { PostgresServer } from "#test/benchmarks/servers/PostgresServer.ts"

/** The tables' owner. */
export const administrator = (url: Redacted.Redacted) => Postgres.layerAdministrator({ url, maxConnections: 2 })

export const make = Effect.fnUntraced(function* (name: string) {
  const { database } = yield* PostgresServer
  const url = yield* database(name)
  yield* Effect.provide(Migrations.run(), administrator(url), { local: true })
  return url
})

/** The event store as a service has it. */
export const store = (url: Redacted.Redacted) =>
  EventStore.layer.pipe(Layer.provide(NodeCrypto.layer), Layer.provideMerge(Postgres.layer({ url, maxConnections: 10 })))

/**
 * What is added: events of so many keys, of which the first `vatIds` are live answers about a VAT ID each and the rest repetitions of
 * them. Streams, meters, the newest answers and the keys' accounts agree with the events.
 */
export interface Contents {
  readonly events: number
  readonly keys: number
  readonly vatIds: number
}

/** Events of one statement: their transaction should not outgrow the server's memory. */
const portion = 500_000

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

/** The personal document of an answer, with the evidence: about 1 kB. */
const document = JSON.stringify({
  company_address: "Musterstrasse 22\n12345 musterort",
  company_name: "Musterhaus GmbH & Co KG",
  evidence: { http_status: 200, request: "x".repeat(120), response: "y".repeat(420), response_sha256: "0".repeat(64) },
  salt: "0".repeat(32)
})

/** A source's answer as an event holds it. */
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

/** The same as a response needs it. */
const cachedAnswer = JSON.stringify({
  source: answer.source,
  valid: answer.valid,
  answered_at: answer.answered_at,
  company_name: "Musterhaus GmbH & Co KG",
  company_address: "Musterstrasse 22\n12345 musterort"
})

const repetition =
  '{"answer":null,"answer_position":#,"answered_at":"2026-11-21T09:00:00.000Z","attempts":[],"force_live":false,' +
  '"requester_vat_id":null,"served":"cache","source":"vies","valid":true,"vat_id":"@"}'

/** Key k has the events from k × `each` on, so its stream and its index entries lie together; that does not matter to what is measured. */
const fillEvents = Effect.fnUntraced(function* (from: number, { events, keys, vatIds }: Contents) {
  const sql = yield* SqlClient.SqlClient
  const each = Math.ceil(events / keys)
  for (let start = 0; start < events; start += portion) {
    const end = Math.min(events, start + portion)
    yield* sql`INSERT INTO vatproof.events (log_id, position, stream_id, version, event_id, type, schema_version, occurred_at,
        recorded_at, correlation_id, trace_id, meter_id, units, data, metadata)
      SELECT 0, p, 'key-' || k, i % ${each}::int + 1, ('0190' || lpad(to_hex(p), 28, '0'))::uuid, 'VatIdVerified', 1, now(), now(),
        ('0191' || lpad(to_hex(p), 28, '0'))::uuid, decode(md5(p::text), 'hex'), 'key-' || k || '-2026-11', 1,
        CASE WHEN i < ${vatIds}::int THEN replace(${liveAnswer}, '@', v)
          ELSE replace(replace(${repetition}, '@', v), '#', (${from}::bigint + i % ${vatIds}::int)::text) END,
        '{"request_id":"' || ('0192' || lpad(to_hex(p), 28, '0'))::uuid || '"}'
      FROM generate_series(${start}::int, ${end - 1}::int) AS i,
        LATERAL (SELECT ${from}::bigint + i AS p, ${keyIdOf(sql, from, `(i / ${each})`)} AS k,
          'ATU2' || lpad((i % ${vatIds}::int)::text, 7, '0') AS v) AS made`
    yield* sql`UPDATE vatproof.logs SET next_position = ${from + end}::bigint, last_recorded_at = now()`
    if (events > portion) yield* Console.log(`  ${end} of ${events} events are made up`)
  }
})

/** Ids that differ from those of the time before. */
const keyIdOf = (sql: SqlClient.SqlClient, from: number, index: string) => sql.literal(`md5('key ${from} ' || ${index})::uuid`)

const fillOthers = Effect.fnUntraced(function* (from: number, { events, keys, vatIds }: Contents) {
  const sql = yield* SqlClient.SqlClient
  const each = Math.ceil(events / keys)
  const size = sql`least(${each}::int, ${events}::int - k * ${each}::int)`
  const id = keyIdOf(sql, from, "k")
  const series = sql`generate_series(0, ${Math.ceil(events / each) - 1}::int) AS k`
  yield* sql`INSERT INTO vatproof.streams (log_id, stream_id, version, first_position, last_position)
    SELECT 0, 'key-' || ${id}, ${size}, ${from}::bigint + k * ${each}::int, ${from}::bigint + k * ${each}::int + ${size} - 1 FROM ${series}`
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

/** What the database would do by itself some time later, in the middle of a measurement. */
export const tidy = (url: Redacted.Redacted) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`VACUUM (ANALYZE)`).pipe(Effect.provide(administrator(url), { local: true }))

/** Adds events after those that are there. Nothing else may write meanwhile. */
export const fill = (url: Redacted.Redacted, contents: Contents) =>
  Effect.gen(function* () {
    const from = yield* findHead
    yield* fillEvents(from, contents)
    yield* fillOthers(from, contents)
    yield* tidy(url)
    return from + contents.events
  }).pipe(Effect.provide(administrator(url), { local: true }))

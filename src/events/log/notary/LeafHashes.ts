/**
 * Computes leaf hashes inside the database, which then sends 32 bytes per event instead of the event. The notary, the scrubber and
 * `audit verify --fast` use these hashes. `audit verify` without `--fast`, and the notary when it starts, compute the leaf hashes
 * from the events instead.
 */
import { Effect, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { logId } from "#events/log/store/AppendCommand.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import type { Range } from "#events/log/merkle/MerkleTree.ts"
import { leafHashes } from "#events/log/notary/StoredLeaf.ts"
import { hashesIn } from "#events/log/merkle/Tiles.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { utcText } from "#events/log/store/StoredEvent.ts"

const retryFor = "3 seconds"

const idOrNull = (value: string) => `coalesce('"' || ${value} || '"', 'null')`
/** SQL: a text as JSON, or null. PostgreSQL escapes the same characters as JSON.stringify: quotes, backslashes, those below U+0020. */
const textOrNull = (value: string) => `coalesce(to_json(${value})::text, 'null')`
const digest = (value: string) => `encode(sha256(convert_to(${value}, 'UTF8')), 'hex')`

/** SQL: the leaf of an event. A test compares the leaf with the result of EventLeaf.leafText. */
const leaf = `'{"causation_id":' || ${idOrNull("causation_id")} || ',"correlation_id":"' || correlation_id
  || '","data_sha256":"' || ${digest("data")} || '","event_id":"' || event_id || '","log_id":' || log_id
  || ',"metadata_sha256":"' || ${digest("metadata")} || '","meter_id":' || ${textOrNull("meter_id")}
  || ',"occurred_at":"' || ${utcText("occurred_at")} || '","position":' || position || ',"recorded_at":"' || ${utcText("recorded_at")}
  || '","schema_version":' || schema_version || ',"stream_id":' || ${textOrNull("stream_id")}
  || ',"trace_id":' || ${idOrNull("encode(trace_id, 'hex')")} || ',"type":' || ${textOrNull("type")}
  || ',"units":' || units || ',"version":' || version || '}'`

/**
 * SQL: true if EventLeaf.leafText would accept the event. The condition omits the checks whose result the column types guarantee.
 */
const sound = `log_id >= 0 AND version >= 0 AND schema_version >= 0 AND position + version <= ${Number.MAX_SAFE_INTEGER}
  AND octet_length(stream_id) <= 2048 AND octet_length(type) <= 2048 AND coalesce(octet_length(meter_id) <= 2048, true)
  AND least(occurred_at, recorded_at) >= '0001-01-01T00:00:00Z' AND greatest(occurred_at, recorded_at) < '9999-12-31T00:00:00Z'`

/**
 * SQL: the number of events, a boolean that is true if all events meet the condition `sound`, and the leaf hashes (RFC 6962) in the
 * order of positions.
 */
const columns = `count(*) AS found, coalesce(bool_and(${sound}), false) AS sound,
  coalesce(string_agg(sha256('\\x00'::bytea || convert_to(${leaf}, 'UTF8')), ''::bytea ORDER BY position), ''::bytea) AS hashes`

const Row = Schema.Struct({ found: Schema.BigInt, sound: Schema.Boolean, hashes: Schema.Uint8Array })

/**
 * Creates a function that returns the leaf hashes of a range of events; null if an event is missing or malformed. The caller must
 * bound the range.
 */
export const makeComputed = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findOne({
    Request: Schema.Struct({ from: Schema.Int, to: Schema.Int }),
    Result: Row,
    execute: ({ from, to }) => sql`SELECT ${sql.literal(columns)} FROM vatproof.events
      WHERE log_id = ${logId} AND position >= ${from} AND position < ${to}`
  })
  return ({ from, to }: Range) =>
    find({ from, to }).pipe(
      QueryPolicy.withRetry(retryFor),
      // Positions are unique, so a complete count proves that no event of the range is missing.
      Effect.map((row) => (row.sound && Number(row.found) === to - from ? hashesIn(row.hashes) : null))
    )
})

/** Creates a function that returns the leaf hashes of a range of events. Fails if an event is missing or malformed. */
export const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const events = yield* EventStore
  const computed = yield* makeComputed

  return Effect.fnUntraced(function* ({ from, to }: Range) {
    const hashes = yield* computed({ from, to })
    if (hashes !== null) return hashes
    // Reads the events, so that the error names the first missing or malformed event. This read can also succeed, because the SQL
    // condition `sound` rejects some events that leafText accepts.
    return yield* Effect.fromResult(leafHashes(crypto, yield* events.read(from, to - from), { from, to }))
  })
})

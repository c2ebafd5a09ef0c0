/** Computes keyed hashes with a key that the database generated (migrations/0003_accounts.sql). */
import { Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** A starting service retries for this duration while the database is unavailable. */
const retryFor = "10 seconds"

export const layer = Layer.effect(
  KeyedHash,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const crypto = yield* Crypto
    const find = SqlSchema.findOne({
      Request: Schema.Void,
      Result: Schema.Struct({ key: Schema.Uint8Array }),
      execute: () => sql`SELECT key FROM vatproof.hash_key`
    })
    const { key } = yield* find(undefined).pipe(QueryPolicy.withRetry(retryFor))
    return { of: (purpose, text) => crypto.hmacSha256Hex(key, `${purpose}:${text}`) }
  })
)

/** Lists the API keys of an account with the labels that its owner gave them. */
import { Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { ApiKeyList } from "#domain/accounts/keys/ApiKeyList.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const findKeys = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({
      prefix: Schema.String,
      label: Schema.String,
      issuedAt: Schema.DateTimeUtcFromDate,
      revoked: Schema.Boolean
    }),
    execute: (accountId) => sql`SELECT k.prefix, k.issued_at AS "issuedAt", k.revoked_at IS NOT NULL AS revoked,
        coalesce((SELECT l.label FROM vatproof.api_key_labels l WHERE l.key_id = k.key_id), '') AS label
      FROM vatproof.api_keys k WHERE k.account_id = ${accountId} ORDER BY k.issued_at DESC, k.key_id DESC`
  })

  return ApiKeyList.of({
    all: (accountId) => findKeys(accountId).pipe(QueryPolicy.withRetry("3 seconds")),
    label: ({ accountId, keyId, label }) =>
      sql`INSERT INTO vatproof.api_key_labels (key_id, account_id, label) VALUES (${keyId}, ${accountId}, ${label})`.pipe(
        Effect.asVoid,
        Effect.catchTag("SqlError", QueryPolicy.refused)
      )
  })
})

export const layer = Layer.effect(ApiKeyList, make)

/**
 * Stores the hashes of the tokens in mails. The hashes are in a table and not in events, because they are erased together with the
 * contact data.
 */
import { DateTime, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { EmailTokens } from "#domain/accounts/EmailTokens.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const findToken = SqlSchema.findOneOption({
    Request: Schema.Struct({ sha256: Schema.String, purpose: Schema.String }),
    Result: Schema.Struct({ account_id: Schema.String, issued_at: Schema.DateTimeUtcFromDate }),
    execute: ({ purpose, sha256 }) =>
      sql`SELECT account_id, issued_at FROM vatproof.mail_tokens
        WHERE token_sha256 = decode(${sha256}, 'hex') AND purpose = ${purpose}`
  })

  return EmailTokens.of({
    put: (sha256, { accountId, issuedAt, purpose }) =>
      sql`INSERT INTO vatproof.mail_tokens (token_sha256, account_id, purpose, issued_at)
        VALUES (decode(${sha256}, 'hex'), ${accountId}, ${purpose}, ${DateTime.toDateUtc(issuedAt)})`.pipe(
        Effect.asVoid,
        Effect.catchTag("SqlError", QueryPolicy.refused)
      ),
    find: (sha256, purpose) =>
      findToken({ sha256, purpose }).pipe(
        QueryPolicy.withRetry("3 seconds"),
        Effect.map(Option.map(({ account_id, issued_at }) => ({ accountId: account_id, purpose, issuedAt: issued_at })))
      ),
    removeOf: (accountId, purpose) =>
      sql`DELETE FROM vatproof.mail_tokens WHERE account_id = ${accountId} AND purpose = coalesce(${purpose ?? null}, purpose)`.pipe(
        Effect.asVoid,
        Effect.catchTag("SqlError", QueryPolicy.refused)
      )
  })
})

export const layer = Layer.effect(EmailTokens, make)

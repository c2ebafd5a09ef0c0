/** Verification tokens in a table, because what is erased with the contact data cannot stand in the log. */
import { DateTime, Effect, Layer, Option, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { VerificationTokens } from "#domain/VerificationTokens.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const findToken = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Schema.Struct({ account_id: Schema.String, issued_at: Schema.DateTimeUtcFromDate }),
    execute: (sha256) =>
      sql`SELECT account_id, issued_at FROM vatproof.verification_tokens WHERE token_sha256 = decode(${sha256}, 'hex')`
  })

  return VerificationTokens.of({
    put: (sha256, { accountId, issuedAt }) =>
      sql`INSERT INTO vatproof.verification_tokens (token_sha256, account_id, issued_at)
        VALUES (decode(${sha256}, 'hex'), ${accountId}, ${DateTime.toDateUtc(issuedAt)})`.pipe(
        Effect.asVoid,
        Effect.catchTag("SqlError", StoreAccess.refused)
      ),
    find: (sha256) =>
      findToken(sha256).pipe(
        StoreAccess.patiently("3 seconds"),
        Effect.map(Option.map(({ account_id, issued_at }) => ({ accountId: account_id, issuedAt: issued_at })))
      ),
    removeOf: (accountId) =>
      sql`DELETE FROM vatproof.verification_tokens WHERE account_id = ${accountId}`.pipe(
        Effect.asVoid,
        Effect.catchTag("SqlError", StoreAccess.refused)
      )
  })
})

export const layer = Layer.effect(VerificationTokens, make)

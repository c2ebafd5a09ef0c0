/** Reads and changes the credentials of accounts: the password hash, and the token epoch. A new epoch invalidates all login tokens. */
import { Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { emailKey } from "#domain/accounts/email/EmailAddress.ts"
import { CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"

const Row = Schema.Struct({
  accountId: Schema.String,
  passwordHash: Schema.NullOr(Schema.RedactedFromValue(Schema.String)),
  verified: Schema.Boolean,
  epoch: Schema.Int
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const columns = sql`c.account_id AS "accountId", c.password_hash AS "passwordHash", c.token_epoch AS epoch,
    (SELECT a.verified_at FROM vatproof.accounts a WHERE a.account_id = c.account_id) IS NOT NULL AS verified FROM vatproof.contacts c`

  const findByEmail = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Row,
    execute: (key) => sql`SELECT ${columns} WHERE c.email_key = ${key}`
  })

  const findByAccount = SqlSchema.findOneOption({
    Request: Schema.String,
    Result: Row,
    execute: (accountId) => sql`SELECT ${columns} WHERE c.account_id = ${accountId}`
  })

  return CredentialStore.of({
    byEmail: (email) => findByEmail(emailKey(email)).pipe(QueryPolicy.withRetry(retryFor)),
    byAccount: (accountId) => findByAccount(accountId).pipe(QueryPolicy.withRetry(retryFor)),
    setPassword: (accountId, passwordHash) =>
      sql`UPDATE vatproof.contacts SET token_epoch = token_epoch + 1, password_hash = ${passwordHash === null ? null : Redacted.value(passwordHash)}
        WHERE account_id = ${accountId}`.pipe(Effect.asVoid, Effect.catchTag("SqlError", QueryPolicy.refused))
  })
})

export const layer = Layer.effect(CredentialStore, make)

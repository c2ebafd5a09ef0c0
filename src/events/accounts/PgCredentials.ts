/** Reads and changes the credentials of accounts: the password hash, and the token epoch. A new epoch invalidates all login tokens. */
import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { emailKey } from "#domain/accounts/email/EmailAddress.ts"
import { CredentialStore } from "#domain/accounts/login/CredentialStore.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"

const Row = Schema.Struct({
  account_id: Schema.String,
  password_hash: Schema.NullOr(Schema.String),
  verified: Schema.Boolean,
  epoch: Schema.Int
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const columns = sql`c.account_id, c.password_hash, c.token_epoch AS epoch,
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
    byEmail: Effect.fn("PgCredentials.byEmail")(function* (email: string) {
      return Option.map(yield* findByEmail(emailKey(email)).pipe(QueryPolicy.withRetry(retryFor)), loginOf)
    }),
    byAccount: Effect.fn("PgCredentials.byAccount")(function* (accountId: string) {
      return Option.map(yield* findByAccount(accountId).pipe(QueryPolicy.withRetry(retryFor)), loginOf)
    }),
    setPassword: (accountId, passwordHash) =>
      sql`UPDATE vatproof.contacts SET token_epoch = token_epoch + 1, password_hash = ${passwordHash === null ? null : Redacted.value(passwordHash)}
        WHERE account_id = ${accountId}`.pipe(Effect.asVoid, Effect.catchTag("SqlError", QueryPolicy.refused))
  })
})

const loginOf = ({ account_id, epoch, password_hash, verified }: typeof Row.Type) => ({
  accountId: account_id,
  passwordHash: password_hash === null ? null : Redacted.make(password_hash),
  verified,
  epoch
})

export const layer = Layer.effect(CredentialStore, make)

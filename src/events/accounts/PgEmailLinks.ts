/**
 * Stores the hashes of the tokens in mails, and queues the mails. The hashes are in a table and not in events, because they are erased
 * together with the contact data.
 */
import { DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { InvalidToken } from "#domain/accounts/Account.ts"
import { EmailLinks } from "#domain/accounts/email/EmailLinks.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { Outbox } from "#events/accounts/Outbox.ts"
import { tokenOf } from "#events/accounts/OutboxRows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

/** The form of every issued token. Text in another form is rejected without a query. */
const form = /^[\da-f]{64}$/u

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const { enqueue } = yield* Outbox

  const findToken = SqlSchema.findOneOption({
    Request: Schema.Struct({ sha256: Schema.String, purpose: Schema.String }),
    Result: Schema.Struct({ accountId: Schema.String, issuedAt: Schema.DateTimeUtcFromDate }),
    execute: ({ purpose, sha256 }) =>
      sql`SELECT account_id AS "accountId", issued_at AS "issuedAt" FROM vatproof.mail_tokens
        WHERE token_sha256 = decode(${sha256}, 'hex') AND purpose = ${purpose}`
  })

  return EmailLinks.of({
    send: Effect.fn("EmailLinks.send")(
      function* (purpose, { accountId, email }, issuedAt) {
        const mailId = crypto.uuidV7()
        const sha256 = crypto.sha256Hex(Redacted.value(tokenOf(keyedHash, mailId)))
        yield* sql`INSERT INTO vatproof.mail_tokens (token_sha256, account_id, purpose, issued_at)
          VALUES (decode(${sha256}, 'hex'), ${accountId}, ${purpose}, ${DateTime.toDateUtc(issuedAt)})`
        yield* enqueue({ mailId, purpose, accountId, email })
      },
      Effect.catchTag("SqlError", (error) => QueryPolicy.refused(error))
    ),
    find: Effect.fnUntraced(function* (purpose, token) {
      const text = Redacted.value(token).toLowerCase()
      if (!form.test(text)) return yield* new InvalidToken({ purpose })
      const issued = yield* findToken({ sha256: crypto.sha256Hex(text), purpose }).pipe(QueryPolicy.withRetry("3 seconds"))
      return yield* Option.match(issued, { onNone: () => Effect.fail(new InvalidToken({ purpose })), onSome: Effect.succeed })
    }),
    removeOf: (accountId, purpose) =>
      sql`DELETE FROM vatproof.mail_tokens WHERE account_id = ${accountId} AND purpose = coalesce(${purpose ?? null}, purpose)`.pipe(
        Effect.asVoid,
        Effect.catchTag("SqlError", QueryPolicy.refused)
      )
  })
})

export const layer = Layer.effect(EmailLinks, make)

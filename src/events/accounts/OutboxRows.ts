/** The statements that read and change the table of requested mails (migrations/0005_outbox.sql). */
import { Duration, Effect, Option, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import type { OutgoingMail } from "#domain/accounts/email/Mailer.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { columnsFor } from "#events/log/database/Rows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import * as TraceParent from "#events/log/store/TraceParent.ts"

/** `mailId` is a UUID; `email` is the address as the user typed it. */
export type RequestedEmail = Pick<OutgoingMail, "mailId" | "purpose" | "accountId" | "email">

/** Returns the token of a mail: a keyed hash of its id, 64 hex digits. The delivery computes it again, so no table contains a token. */
export const tokenOf = (keyedHash: KeyedHash["Service"], mailId: string): Redacted.Redacted =>
  Redacted.make(keyedHash.of("mail", mailId))

/** A mail that this replica delivers. `claim` identifies the attempt; `attempts` is its number, from 1. */
export interface ClaimedMail extends OutgoingMail {
  readonly claim: string
  readonly attempts: number
}

/** A mail that is no longer needed and was not sent. */
export interface SettledMail {
  readonly mailId: string
  readonly state: "expired" | "needless"
}

/** The final result of a mail. */
export type Outcome = "sent" | "refused"

const Row = Schema.Struct({
  mailId: Schema.String,
  accountId: Schema.String,
  purpose: Schema.Literals(["verify_email", "reset_password"]),
  state: Schema.Literals(["claimed", "expired", "needless"]),
  email: Schema.NullOr(Schema.String),
  requestedAt: Schema.DateTimeUtcFromDate,
  expiresAt: Schema.DateTimeUtcFromDate,
  attempts: Schema.Int
})

/** Time for which storing a result is retried during an outage. If the result is lost, a sent mail is sent again. */
const retryFor = "20 seconds"

/** Creates the functions that read and write the table. If a replica dies, another one takes over its mails when their `lease` has expired. */
export const make = Effect.fnUntraced(function* (lease: Duration.Input) {
  const sql = yield* SqlClient.SqlClient
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const linksOf = yield* makeLinksOf
  const leaseMs = BigInt(Duration.toMillis(Duration.fromInputUnsafe(lease)))
  const leaseEnd = sql`clock_timestamp() + ${leaseMs} * interval '1 millisecond'`

  const findTurn = SqlSchema.findAll({
    Request: Schema.String,
    Result: Row,
    execute: (claim) => sql`SELECT ${sql.literal(columnsFor(Row.fields))}
      FROM vatproof.claim_mail(${claim}, ${leaseMs})`
  })

  /** Settles mails that are no longer needed, and claims one that is due. */
  const claim = Effect.gen(function* () {
    const attempt = crypto.uuidV7()
    const rows = yield* findTurn(attempt)
    return {
      settled: rows.flatMap(({ mailId, state }) => (state === "claimed" ? [] : [{ mailId, state } satisfies SettledMail])),
      claimed: Option.firstSomeOf(rows.map((row) => claimedMail(row, tokenOf(keyedHash, row.mailId), attempt)))
    }
  }).pipe(QueryPolicy.withRetry("0 millis"))

  const findKept = SqlSchema.findAll({
    Request: Schema.Struct({ mailId: Schema.String, claim: Schema.String }),
    Result: Schema.Struct({ mail_id: Schema.String }),
    execute: (mail) => sql`UPDATE vatproof.outbox SET due_at = ${leaseEnd}
      WHERE mail_id = ${mail.mailId} AND claim = ${mail.claim} AND settled_at IS NULL RETURNING mail_id`
  })

  /** Renews the lease of a mail. Returns false if another replica has claimed the mail, else true (also if the database is unavailable). */
  const keep = (mail: ClaimedMail) =>
    findKept(mail).pipe(
      Effect.map((kept) => kept.length > 0),
      QueryPolicy.withRetry("0 millis"),
      Effect.catchTag("StoreUnavailable", () => Effect.succeed(true))
    )

  const settle = (mail: ClaimedMail, outcome: Outcome, reply: string) =>
    sql`UPDATE vatproof.outbox SET state = ${outcome}, reply = ${reply}, email = NULL, settled_at = clock_timestamp()
      WHERE mail_id = ${mail.mailId} AND claim = ${mail.claim}`.pipe(QueryPolicy.withRetry(retryFor))

  /** Releases a mail that was not accepted. Its next attempt is due after `wait`. */
  const defer = (mail: ClaimedMail, reply: string, wait: Duration.Duration) =>
    sql`UPDATE vatproof.outbox SET state = 'waiting', claim = NULL, reply = ${reply},
        due_at = least(expires_at, clock_timestamp() + ${BigInt(Math.round(Duration.toMillis(wait)))} * interval '1 millisecond')
      WHERE mail_id = ${mail.mailId} AND claim = ${mail.claim} AND settled_at IS NULL`.pipe(QueryPolicy.withRetry(retryFor))

  /** Queues a mail in the caller's transaction. It replaces a waiting mail of the same purpose, because only the newest link is valid. */
  const add = Effect.fnUntraced(function* ({ accountId, email, mailId, purpose }: RequestedEmail, lifetime: Duration.Duration) {
    const lifetimeMs = BigInt(Duration.toMillis(lifetime))
    yield* sql`UPDATE vatproof.outbox SET state = 'superseded', email = NULL, settled_at = clock_timestamp()
      WHERE account_id = ${accountId} AND purpose = ${purpose} AND state = 'waiting'`
    yield* sql`INSERT INTO vatproof.outbox (mail_id, account_id, purpose, email, traceparent, expires_at)
      VALUES (${mailId}, ${accountId}, ${purpose}, ${email}, ${yield* TraceParent.current},
        now() + ${lifetimeMs} * interval '1 millisecond')`
  })

  return { claim, linksOf, keep, settle, defer, add }
})

/** Creates a function that returns a trace link to the request which queued a mail; no link during an outage. */
const makeLinksOf = Effect.map(SqlClient.SqlClient, (sql) => {
  const findAsked = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ traceparent: Schema.NullOr(Schema.String) }),
    execute: (mailId) => sql`SELECT traceparent FROM vatproof.outbox WHERE mail_id = ${mailId}`
  })
  return ({ mailId }: ClaimedMail) =>
    findAsked(mailId).pipe(
      QueryPolicy.withRetry("0 millis"),
      Effect.map(([row]) => TraceParent.linksTo(row?.traceparent ?? null)),
      Effect.catchTag("StoreUnavailable", () => Effect.succeed(TraceParent.linksTo(null)))
    )
})

const claimedMail = (
  { email, expiresAt, ...row }: typeof Row.Type,
  token: Redacted.Redacted,
  claim: string
): Option.Option<ClaimedMail> =>
  email === null ? Option.none() : Option.some({ ...row, email, token, validUntil: expiresAt, claim })

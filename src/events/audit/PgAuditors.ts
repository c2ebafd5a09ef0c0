/**
 * Adds, lists, revokes and identifies auditors. The transaction that appends an event also updates the table `vatproof.auditors`,
 * so all replicas reject a revoked token at once.
 */
import { DateTime, Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AuditorAdded, AuditorRevoked, auditorStream, generateToken, isToken, type Auditor } from "#domain/audit/Auditor.ts"
import { type NewAuditor, Auditors, InvalidAuditorToken, UnknownAccount, UnknownAuditor } from "#domain/audit/Auditors.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { columnsFor } from "#events/log/database/Rows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"
const maxListed = 1_000

const Row = Schema.Struct({
  auditorId: Schema.String,
  accountId: Schema.NullOr(Schema.String),
  name: Schema.String,
  addedAt: Schema.DateTimeUtcFromDate,
  expiresAt: Schema.DateTimeUtcFromDate,
  revokedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

const make = Effect.gen(function* () {
  const events = yield* EventStore
  const crypto = yield* Crypto
  const { findAccount, findAll, findById, findByToken } = yield* makeReads

  const add = Effect.fn("PgAuditors.add")(function* ({ accountId, expiresAt, name }: NewAuditor) {
    if (accountId !== null && (yield* findAccount(accountId)).length === 0) return yield* new UnknownAccount({ accountId })
    const auditorId = crypto.uuidV7()
    const token = yield* generateToken(crypto)
    const hash = crypto.sha256Hex(token)
    const added = { auditor_id: auditorId, account_id: accountId, name, expires_at: expiresAt, token_sha256: hash }
    yield* events.appendFact(auditorStream(auditorId), AuditorAdded.make(added))
    return { auditorId, token: Redacted.make(token) }
  })

  const revoke = Effect.fn("PgAuditors.revoke")(function* (auditorId: string) {
    const [row] = yield* findById(auditorId)
    if (row === undefined || row.revokedAt !== null) return yield* new UnknownAuditor({ auditorId })
    const revoked = AuditorRevoked.make({ auditor_id: auditorId, account_id: row.accountId })
    yield* events.appendFact(auditorStream(auditorId), revoked)
  })

  const byToken = Effect.fn("PgAuditors.byToken")(function* (token: Redacted.Redacted) {
    const text = Redacted.value(token)
    if (!isToken(text)) return yield* new InvalidAuditorToken({})
    const [row] = yield* findByToken(crypto.sha256Hex(text))
    const now = yield* DateTime.now
    if (row === undefined || row.revokedAt !== null || DateTime.isLessThanOrEqualTo(row.expiresAt, now)) {
      return yield* new InvalidAuditorToken({})
    }
    return { auditorId: row.auditorId, accountId: row.accountId, expiresAt: row.expiresAt } satisfies Auditor
  })

  return Auditors.of({ add, list: findAll, revoke, byToken })
})

const makeReads = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal(columnsFor(Row.fields))

  const byHash = SqlSchema.findAll({
    Request: Schema.String,
    Result: Row,
    execute: (hash) => sql`SELECT ${columns} FROM vatproof.auditors WHERE token_sha256 = decode(${hash}, 'hex')`
  })

  // Compares the id as text. A malformed id therefore matches no auditor; as a UUID it would cause a database error.
  const byId = SqlSchema.findAll({
    Request: Schema.String,
    Result: Row,
    execute: (id) => sql`SELECT ${columns} FROM vatproof.auditors WHERE auditor_id::text = ${id}`
  })

  const all = SqlSchema.findAll({
    Request: Schema.Void,
    Result: Row,
    execute: () => sql`SELECT ${columns} FROM vatproof.auditors ORDER BY added_at DESC, auditor_id LIMIT ${maxListed}`
  })

  const account = SqlSchema.findAll({
    Request: Schema.String,
    Result: Schema.Struct({ account_id: Schema.String }),
    execute: (id) => sql`SELECT account_id FROM vatproof.accounts WHERE account_id::text = ${id}`
  })

  return {
    findByToken: (hash: string) => byHash(hash).pipe(QueryPolicy.withRetry(retryFor)),
    findById: (id: string) => byId(id).pipe(QueryPolicy.withRetry(retryFor)),
    findAll: Effect.suspend(() => all(undefined)).pipe(QueryPolicy.withRetry(retryFor)),
    findAccount: (id: string) => account(id).pipe(QueryPolicy.withRetry(retryFor))
  }
})

export const layer = Layer.effect(Auditors, make)

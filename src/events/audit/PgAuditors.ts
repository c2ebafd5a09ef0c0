/**
 * Adds, lists, revokes and identifies auditors. The transaction that appends an event also updates the table `vatproof.auditors`,
 * so all replicas reject a revoked token at once.
 */
import { DateTime, Effect, Layer, Redacted, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { AuditorAdded, AuditorRevoked, auditorStream, generateToken, isToken, type Auditor } from "#domain/audit/Auditor.ts"
import {
  type NewAuditor,
  type AuditorEntry,
  Auditors,
  InvalidAuditorToken,
  UnknownAccount,
  UnknownAuditor
} from "#domain/audit/Auditors.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "3 seconds"
const maxListed = 1_000

const Row = Schema.Struct({
  auditor_id: Schema.String,
  account_id: Schema.NullOr(Schema.String),
  name: Schema.String,
  added_at: Schema.DateTimeUtcFromDate,
  expires_at: Schema.DateTimeUtcFromDate,
  revoked_at: Schema.NullOr(Schema.DateTimeUtcFromDate)
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
    if (row === undefined || row.revoked_at !== null) return yield* new UnknownAuditor({ auditorId })
    const revoked = AuditorRevoked.make({ auditor_id: auditorId, account_id: row.account_id })
    yield* events.appendFact(auditorStream(auditorId), revoked)
  })

  const byToken = Effect.fn("PgAuditors.byToken")(function* (token: Redacted.Redacted) {
    const text = Redacted.value(token)
    if (!isToken(text)) return yield* new InvalidAuditorToken({})
    const [row] = yield* findByToken(crypto.sha256Hex(text))
    const now = yield* DateTime.now
    if (row === undefined || row.revoked_at !== null || DateTime.isLessThanOrEqualTo(row.expires_at, now)) {
      return yield* new InvalidAuditorToken({})
    }
    return { auditorId: row.auditor_id, accountId: row.account_id, expiresAt: row.expires_at } satisfies Auditor
  })

  const list = findAll.pipe(
    Effect.map((rows) =>
      rows.map(({ account_id, added_at, auditor_id, expires_at, name, revoked_at }): AuditorEntry => ({
        auditorId: auditor_id,
        accountId: account_id,
        expiresAt: expires_at,
        name,
        addedAt: added_at,
        revokedAt: revoked_at
      }))
    )
  )

  return Auditors.of({ add, list, revoke, byToken })
})

const makeReads = Effect.map(SqlClient.SqlClient, (sql) => {
  const columns = sql.literal("auditor_id, account_id, name, added_at, expires_at, revoked_at")

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

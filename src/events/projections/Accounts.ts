/**
 * Accounts and API keys as read by decisions: kept in the transaction of their events, so that a decision never sees an old state.
 * What the events do not say, the contact data, is written beside them.
 */
import { type Array as Arr, DateTime, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { accountStream, AccountRegistered } from "#domain/Account.ts"
import { AccountStore, type Contact, EmailTaken } from "#domain/AccountStore.ts"
import { ApiKeyIssued, ApiKeyRevoked } from "#domain/ApiKey.ts"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import { emailKey } from "#domain/EmailAddress.ts"
import * as Catalogue from "#events/Catalogue.ts"
import { EventStore } from "#events/EventStore.ts"
import * as StoreAccess from "#events/StoreAccess.ts"

/** Applies one event to the tables; events of other types change nothing here. */
export const makeApply = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const registered = Catalogue.fromJson(AccountRegistered)
  const issued = Catalogue.fromJson(ApiKeyIssued)
  const revoked = Catalogue.fromJson(ApiKeyRevoked)

  return Effect.fnUntraced(function* (event: DomainEvent, occurredAt: DateTime.Utc) {
    const at = DateTime.toDateUtc(occurredAt)
    switch (event.type) {
      case AccountRegistered.type: {
        const { account_id, plan } = yield* registered(event.data)
        return yield* sql`INSERT INTO vatproof.accounts (account_id, plan, verified_at, created_at) VALUES (${account_id}, ${plan}, ${at}, ${at})`
      }
      case ApiKeyIssued.type: {
        const { account_id, key_id, key_sha256, prefix } = yield* issued(event.data)
        return yield* sql`INSERT INTO vatproof.api_keys (key_id, account_id, key_sha256, prefix, issued_at)
          VALUES (${key_id}, ${account_id}, decode(${key_sha256}, 'hex'), ${prefix}, ${at})`
      }
      case ApiKeyRevoked.type: {
        const { key_id } = yield* revoked(event.data)
        return yield* sql`UPDATE vatproof.api_keys SET revoked_at = ${at} WHERE key_id = ${key_id}`
      }
      default:
        return []
    }
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventStore
  const apply = yield* makeApply

  const create = Effect.fn("AccountStore.create")(
    function* (accountId: string, contact: Contact, facts: Arr.NonEmptyReadonlyArray<DomainEvent>) {
      const { agentId, email } = contact
      const write = Effect.fnUntraced(function* (at: DateTime.Utc) {
        yield* Effect.forEach(facts, (event) => apply(event, at), { discard: true })
        yield* sql`INSERT INTO vatproof.contacts (account_id, email, email_key, agent_id)
          VALUES (${accountId}, ${email}, ${email === null ? null : emailKey(email)}, ${agentId})`
      })
      const command = { stream: accountStream(accountId), expectedVersion: 0, events: facts, charge: null, latestOf: null }
      yield* events.appendWith([command], write)
    },
    Effect.asVoid,
    Effect.catchReason("SqlError", "UniqueViolation", (violation) =>
      violation.constraint === "contacts_email_key_key" ? Effect.fail(new EmailTaken({})) : Effect.die(violation)
    ),
    // A new stream of our own and no charge: nobody else can have written to it.
    Effect.catchTag(["StreamMoved", "MeterFull"], Effect.die),
    Effect.catchTag("SqlError", (error) => StoreAccess.refused(error))
  )

  return AccountStore.of({ create })
})

export const layer = Layer.effect(AccountStore, make)

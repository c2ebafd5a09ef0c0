/** The API keys that the events of an export refer to, with the events by which an account got them. */
import { Effect, Option, Predicate, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { idForm } from "#events/accounts/AccountDirectory.ts"
import { ApiKeyClaimed, ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import { type ExportCatalogue, type ExportedEvent, textAt } from "#events/log/export/ExportTable.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import * as EventLine from "#events/log/store/EventLine.ts"
import { StoredEvent } from "#events/log/store/StoredEvent.ts"

/** Time for which a query is retried, so that an export of many minutes survives a restart of the database. */
const retryFor = "30 seconds"

/**
 * The id, account and prefix of an API key, from the event by which the account got the key: `ApiKeyIssued`, or `ApiKeyClaimed` if
 * the account claimed the key from another account.
 */
export type KeyFacts = {
  readonly keyId: string
  readonly accountId: string
  readonly prefix: string
}

/**
 * Returns the id of the API key that an event concerns; null if the event concerns no API key. The id is in the event's data, or in
 * the name of the event's stream (`key-` and the id).
 */
export const keyIdOf = ({ event, data }: Pick<ExportedEvent, "event" | "data">): string | null => {
  const id = textAt(data, ["key_id"]) ?? event.stream_id.replace(/^key-/u, "")
  return idForm.test(id) ? id : null
}

const decodeKey = Schema.decodeUnknownOption(
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String })
)

/** Returns the facts about a key from an event `ApiKeyIssued` or `ApiKeyClaimed`; null for other events and other keys. */
const keyFactsOf = (keyId: string, type: string, data: unknown): KeyFacts | null =>
  type !== ApiKeyIssued.type && type !== ApiKeyClaimed.type
    ? null
    : Option.getOrNull(
        Option.map(
          Option.filter(decodeKey(data), ({ key_id }) => key_id === keyId),
          ({ account_id, prefix }) => ({ keyId, accountId: account_id, prefix })
        )
      )

/**
 * Creates a function that returns the event by which an account got an API key: the issue of the key, or the account's claim of the
 * key. Returns null for an unknown key. Ignores a claim at position `size` or later, because the checkpoint does not cover this
 * claim.
 */
const makeKeyIssue = Effect.map(SqlClient.SqlClient, (sql) => {
  const find = SqlSchema.findAll({
    Request: Schema.Struct({ keyId: Schema.String, accountId: Schema.NullOr(Schema.String) }),
    Result: StoredEvent,
    execute: ({ accountId, keyId }) => sql`SELECT ${sql.literal(StoredEvent.columnsOf("e"))} FROM vatproof.api_keys k, LATERAL (
        SELECT ${sql.literal(StoredEvent.columns)} FROM vatproof.events WHERE log_id = ${logId}
          AND stream_id = 'account-' || coalesce(${accountId}, k.account_id::text) AND type IN ('ApiKeyClaimed', 'ApiKeyIssued') AND strpos(data, k.key_id::text) > 0
        ORDER BY version LIMIT 1) e
      WHERE k.key_id = ${keyId}::uuid`
  })
  return Effect.fnUntraced(function* (keyId: string, size: number) {
    const read = (accountId: string | null) => find({ accountId, keyId }).pipe(QueryPolicy.withRetry(retryFor))
    const [newest = null] = yield* read(null)
    if (newest === null || newest.position < size) return newest
    // An API key can be claimed only once. Before the claim it belonged to the account that registered it.
    const data = EventLine.readData(newest)
    const [former = null] =
      Predicate.hasProperty(data, "from_account_id") && typeof data.from_account_id === "string"
        ? yield* read(data.from_account_id)
        : []
    return former
  })
})

export const keys: ExportCatalogue["Service"]["references"] = {
  folder: "keys",
  noun: "key",
  german: "zu jedem genannten API-Schlüssel seine Ausstellung; der Nachweis ist proofs/key-*.tlog-proof",
  english: "the event that issued each API key named here; its proof is proofs/key-*.tlog-proof",
  idOf: keyIdOf,
  factsOf: keyFactsOf,
  makeFind: makeKeyIssue
}

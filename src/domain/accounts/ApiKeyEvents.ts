/** The events of API keys, which are in the stream of their account. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/log/DomainEvent.ts"

/** A key was issued. `key_sha256` (hex) identifies it; the key itself is not stored. */
export const ApiKeyIssued = DomainEvent.define(
  "ApiKeyIssued",
  1,
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String, key_sha256: Schema.String })
)

/**
 * A key got a new secret. It keeps its id, usage and receipts. `previous_until` is the time until which the former secret is
 * valid; null if the former secret became invalid at once. All older secrets are invalid.
 */
export const ApiKeyRotated = DomainEvent.define(
  "ApiKeyRotated",
  1,
  Schema.Struct({
    account_id: Schema.String,
    key_id: Schema.String,
    prefix: Schema.String,
    key_sha256: Schema.String,
    previous_until: Schema.NullOr(Schema.DateTimeUtcFromString)
  })
)

/** Who can revoke a key: the account's owner, the operator, or a client with the key itself. */
const KeyRevoker = Schema.Literals(["owner", "operator", "key"])
export type KeyRevoker = typeof KeyRevoker.Type

/** A key was revoked permanently. */
export const ApiKeyRevoked = DomainEvent.define(
  "ApiKeyRevoked",
  1,
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String, by: KeyRevoker })
)

/**
 * An account claimed the key of an agent. The key keeps its id, secret, usage and receipts; a former secret from a rotation becomes invalid.
 * `issued_at` is the time of the key's issue. `from_account_id` is the agent's account, whose stream has ApiKeyReleased.
 */
export const ApiKeyClaimed = DomainEvent.define(
  "ApiKeyClaimed",
  1,
  Schema.Struct({
    account_id: Schema.String,
    from_account_id: Schema.String,
    key_id: Schema.String,
    prefix: Schema.String,
    key_sha256: Schema.String,
    issued_at: Schema.DateTimeUtcFromString
  })
)

/** Another account claimed the key of this agent's account. The stream of the other account has ApiKeyClaimed. */
export const ApiKeyReleased = DomainEvent.define(
  "ApiKeyReleased",
  1,
  Schema.Struct({ account_id: Schema.String, to_account_id: Schema.String, key_id: Schema.String, prefix: Schema.String })
)

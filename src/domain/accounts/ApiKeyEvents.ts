/** The events of API keys, which are in the stream of their account. */
import { Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"

/** A key was issued. `key_sha256` (hex) identifies it; the key itself is not stored. */
export const ApiKeyIssued = DomainEvent.define(
  "ApiKeyIssued",
  1,
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String, key_sha256: Schema.String })
)

/**
 * A key was rotated. It keeps its id, usage and receipts. The former secret is valid until `previous_until`; null if it ended at
 * once. Earlier secrets end in any case.
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
 * An account took over a key that an agent had registered. The key keeps its id, its secret, its usage and its receipts; a former secret of a
 * rotation ends. `issued_at` is when the key was issued, `from_account_id` the account of the agent, whose stream has ApiKeyReleased.
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

/** The key went from the account of an agent to another account, whose stream has ApiKeyClaimed. */
export const ApiKeyReleased = DomainEvent.define(
  "ApiKeyReleased",
  1,
  Schema.Struct({ account_id: Schema.String, to_account_id: Schema.String, key_id: Schema.String, prefix: Schema.String })
)

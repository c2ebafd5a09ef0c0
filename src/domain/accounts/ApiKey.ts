/**
 * API keys: `svc_live_`, 32 random base62 characters and 6 characters of checksum (rule 3). The checksum lets a mistyped or made-up
 * key be refused without asking the database; it protects nothing.
 */
import { type Effect, Schema } from "effect"
import * as DomainEvent from "#domain/kernel/DomainEvent.ts"
import type { Crypto } from "#domain/kernel/Crypto.ts"
import * as SecretToken from "#domain/kernel/SecretToken.ts"

const keyStart = "svc_live_"

/** A new key. */
export const draw = (crypto: Crypto["Service"]): Effect.Effect<string> => SecretToken.draw(crypto, keyStart)

/** A key from 64 random bytes; none, hardly ever, if they do not suffice. */
export const compose = (entropy: Uint8Array): string | null => SecretToken.compose(keyStart, entropy)

/** Whether the text has the form of a key and its checksum is right. */
export const isWellFormed = (key: string): boolean => SecretToken.isWellFormed(keyStart, key)

/** The first 12 characters identify a key within its account. */
export const prefixOf = (key: string): string => key.slice(0, 12)

/** A key was issued. `key_sha256` (hex) recognises it; the key itself is kept nowhere. */
export const ApiKeyIssued = DomainEvent.define(
  "ApiKeyIssued",
  1,
  Schema.Struct({ account_id: Schema.String, key_id: Schema.String, prefix: Schema.String, key_sha256: Schema.String })
)

/**
 * A key got a new secret. The key keeps its id, its usage and its receipts. The former secret is good until `previous_until`; null: it ended
 * at once. One from before the former secret has ended in any case.
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

/** Who may revoke a key: the owner of its account, the operator of the service, or a client that has the key itself. */
const KeyRevoker = Schema.Literals(["owner", "operator", "key"])
export type KeyRevoker = typeof KeyRevoker.Type

/** A key was revoked for good. */
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

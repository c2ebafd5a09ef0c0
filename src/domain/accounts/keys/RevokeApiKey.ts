/** Revokes an API key permanently. */
import { Context, Effect, Layer, Result, Schema } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { hasPrefix } from "#domain/accounts/keys/ApiKeyCandidates.ts"
import { ApiKeyRevoked, type KeyRevoker } from "#domain/accounts/ApiKeyEvents.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

/** The account has no key with that id. Clients are not told whether another account has this key. */
export class ApiKeyNotFound extends Schema.TaggedError<ApiKeyNotFound>()("ApiKeyNotFound", {}) {
  override get message() {
    return "You have no API key with this id"
  }
}

/** The secret was replaced by a rotation. Until it expires it validates and reads, but it changes nothing else. */
export class ApiKeyReplaced extends Schema.TaggedError<ApiKeyReplaced>()("ApiKeyReplaced", {}) {
  override get message() {
    return "This API key was replaced by a rotation. It validates and reads until it expires; for changes send the key that replaced it"
  }
}

/** Returns the error for a prefix that no current secret of the account has. A client with a former secret of a key learns that it was replaced. */
export const keyMissing = (state: AccountState, prefix: string): ApiKeyNotFound | ApiKeyReplaced =>
  hasPrefix(state, prefix) ? new ApiKeyReplaced({}) : new ApiKeyNotFound({})

/**
 * Revokes the key with a prefix or id. A client with the key itself names the prefix of its secret, which must be the current one. Revoking a revoked key succeeds without a second event: DELETE is idempotent (RFC 9110,
 * 9.2.2), and 404 is for keys that do not exist or belong to another account.
 */
export const revokeKey = (
  state: AccountState,
  prefixOrId: string,
  by: KeyRevoker
): Result.Result<ReadonlyArray<DomainEvent>, ApiKeyNotFound | ApiKeyReplaced> => {
  const key = state.keys.find((key) => key.prefix === prefixOrId || key.keyId === prefixOrId)
  if (key === undefined) return Result.fail(by === "key" ? keyMissing(state, prefixOrId) : new ApiKeyNotFound({}))
  if (key.revoked) return Result.succeed([])
  return Result.succeed([ApiKeyRevoked.make({ account_id: state.accountId, key_id: key.keyId, prefix: key.prefix, by })])
}

const make = Effect.map(AccountStore, (accounts) => ({
  /** Revokes a key. Returns true if it was active before. */
  revoke: Effect.fn("RevokeApiKey.revoke")(
    (accountId: string, prefixOrId: string, by: KeyRevoker) =>
      accounts.change(accountId, (account) =>
        Effect.map(Effect.fromResult(revokeKey(account, prefixOrId, by)), (events) => ({ events, value: events.length > 0 }))
      ),
    // The account is closed, and its closing revoked all its keys.
    Effect.catchTag("NoSuchAccount", () => Effect.succeed(false))
  )
}))

export class RevokeApiKey extends Context.Service<RevokeApiKey, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/keys/RevokeApiKey"
) {
  static readonly layer = Layer.effect(RevokeApiKey, make)
}

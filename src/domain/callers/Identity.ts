/** Authenticates a client's credential as a caller. */
import { Clock, Context, DateTime, Effect, Layer, Redacted, Schema } from "effect"
import type { AnonymousCaller, Caller, KeyCaller } from "#domain/callers/Caller.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { makeLruCache } from "#domain/concurrency/LruCache.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** The API key is malformed, unknown or revoked. Clients are not told which. */
export class InvalidApiKey extends Schema.TaggedError<InvalidApiKey>()("InvalidApiKey", {}) {
  override get message() {
    return "The API key is not valid. Send a key from POST /v1/register in the header X-Api-Key"
  }
}

/**
 * A client's credential: an API key, or only its address (IPv4, or the /64 prefix of IPv6). `KeyId` has the id of a key, for
 * background work on validations that were submitted with this key.
 */
export type Credential =
  | { readonly _tag: "Key"; readonly key: Redacted.Redacted }
  | { readonly _tag: "KeyId"; readonly keyId: string }
  | { readonly _tag: "Address"; readonly address: string }

export class Identity extends Context.Service<
  Identity,
  {
    /**
     * Returns the caller of an API key, possibly from the cache. Each revoked key and each changed plan increases the identity
     * epoch. The cached caller may then be outdated, so the statement that counts or charges a call compares the current epoch
     * with the caller's epoch.
     */
    readonly byKey: (key: Redacted.Redacted) => Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>
    /** Returns the caller of an API key, always from the database. */
    readonly refresh: (key: Redacted.Redacted) => Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>
    /** Returns the caller of the API key with an id, possibly from the cache. */
    readonly byKeyId: (keyId: string) => Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>
    /** Returns the caller of the API key with an id, always from the database. */
    readonly refreshKeyId: (keyId: string) => Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>
    readonly byAddress: (address: string) => AnonymousCaller
  }
>()("vatproof/domain/callers/Identity") {}

/** Returns the caller, possibly from the cache. */
export const identify = (
  identity: Identity["Service"],
  credential: Credential
): Effect.Effect<Caller, InvalidApiKey | StoreUnavailable> => {
  switch (credential._tag) {
    case "Key":
      return identity.byKey(credential.key)
    case "KeyId":
      return identity.byKeyId(credential.keyId)
    case "Address":
      return Effect.succeed(identity.byAddress(credential.address))
  }
}

/** Returns the caller, bypassing the cache. */
export const refresh = (
  identity: Identity["Service"],
  credential: Credential
): Effect.Effect<Caller, InvalidApiKey | StoreUnavailable> => {
  switch (credential._tag) {
    case "Key":
      return identity.refresh(credential.key)
    case "KeyId":
      return identity.refreshKeyId(credential.keyId)
    case "Address":
      return Effect.succeed(identity.byAddress(credential.address))
  }
}

/** Maximum number of entries per cache, of about 500 bytes each. */
const maxCallers = 50_000

/** Caches the callers of the underlying Identity by the SHA-256 or the id of their key, or by address. */
export const layerCached = Layer.effect(
  Identity,
  Effect.gen(function* () {
    const source = yield* Identity
    const { sha256Hex } = yield* Crypto
    const clock = yield* Clock.Clock
    const callers = makeLruCache<KeyCaller>(maxCallers)
    const anonymous = makeLruCache<AnonymousCaller>(maxCallers)

    /** Reads a caller and caches it under `name`, the hash or the id of its key. Removes the cached caller if reading fails. */
    const read = (name: string, caller: Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>) =>
      Effect.tapCause(
        Effect.map(caller, (current) => {
          callers.set(name, current)
          return current
        }),
        () => Effect.sync(() => callers.delete(name))
      )
    const cachedOr = (name: string, caller: Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>) => {
      const cached = callers.get(name)
      const isValid = cached !== undefined && clock.currentTimeMillisUnsafe() < DateTime.toEpochMillis(cached.validUntil)
      return isValid ? Effect.succeed(cached) : read(name, caller)
    }

    return Identity.of({
      byKey: (key) => cachedOr(sha256Hex(Redacted.value(key)), source.refresh(key)),
      refresh: (key) => read(sha256Hex(Redacted.value(key)), source.refresh(key)),
      byKeyId: (keyId) => cachedOr(keyId, source.refreshKeyId(keyId)),
      refreshKeyId: (keyId) => read(keyId, source.refreshKeyId(keyId)),
      byAddress: (address) => {
        const cached = anonymous.get(address)
        if (cached !== undefined) return cached
        const caller = source.byAddress(address)
        anonymous.set(address, caller)
        return caller
      }
    })
  })
)

/** Moves the API key of an agent that registered itself to an account with a login (rule 42). */
import { Context, type DateTime, Duration, Effect, Layer, Redacted, Result, Schema } from "effect"
import { InvalidAccessToken } from "#domain/accounts/AccessTokens.ts"
import type { AccountState } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import { prefixOf } from "#domain/accounts/ApiKey.ts"
import { ApiKeyClaimed, ApiKeyReleased } from "#domain/accounts/ApiKeyEvents.ts"
import { hasPrefix } from "#domain/accounts/keys/ApiKeyCandidates.ts"
import { keyRefusal } from "#domain/accounts/ApiKeyLimits.ts"
import { ApiKeyList } from "#domain/accounts/keys/ApiKeyList.ts"
import { Identity } from "#domain/callers/Identity.ts"
import { orTooMany, type RateLimitExceeded, RateLimiter } from "#domain/callers/RateLimiter.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"

/** The key is malformed, unknown, revoked or replaced by a rotation; the client is not told which. */
export class UnknownApiKey extends Schema.TaggedError<UnknownApiKey>()("UnknownApiKey", {}) {
  override get message() {
    return "The API key does not exist, is revoked, or was replaced by a rotation"
  }
}

/** The key is valid, but this account cannot claim it. */
export class ApiKeyNotClaimable extends Schema.TaggedError<ApiKeyNotClaimable>()("ApiKeyNotClaimable", {
  message: Schema.String
}) {}

const hasOwner = new ApiKeyNotClaimable({
  message: "This API key belongs to an account with a login: only keys from POST /v1/register can be claimed"
})

const prefixTaken = new ApiKeyNotClaimable({
  message:
    "Another API key of your account has or had the same first 12 characters. Rotate the key that you want to claim (POST /v1/keys/rotate). Then claim the new key"
})

/** The key that a client sent, with its stored id. */
export interface ClaimedKey {
  readonly keyId: string
  readonly prefix: string
  readonly sha256: string
}

/**
 * `released` are the new events of the account that loses the key. `claimed` are the new events of the account that gets it. Both
 * are empty if the claiming account has the key already.
 */
export interface Claim {
  readonly released: ReadonlyArray<DomainEvent>
  readonly claimed: ReadonlyArray<DomainEvent>
}

/**
 * Decides whether the key moves from its holder to the claimer. Returns the events of both accounts, or the reason for the
 * refusal.
 */
export const claimKey = (
  { claimer, holder }: { readonly claimer: AccountState; readonly holder: AccountState },
  { keyId, prefix, sha256 }: ClaimedKey,
  now: DateTime.Utc
): Result.Result<Claim, ApiKeyNotClaimable | RateLimitExceeded | UnknownApiKey> => {
  const isKey = (key: AccountState["keys"][number]) => key.keyId === keyId
  if (claimer.keys.some((key) => isKey(key) && !key.revoked)) return Result.succeed({ released: [], claimed: [] })
  if (holder.hasLogin) return Result.fail(hasOwner)
  const key = holder.keys.find(isKey)
  // Another account claimed the key after `holder` was identified.
  if (key === undefined) return Result.fail(hasOwner)
  const [issue] = key.secrets
  if (key.revoked || key.prefix !== prefix || issue === undefined) return Result.fail(new UnknownApiKey({}))
  const refusal = keyRefusal(claimer, now)
  if (refusal !== null) return Result.fail(refusal)
  if (hasPrefix(claimer, prefix)) return Result.fail(prefixTaken)
  const { accountId: account_id } = claimer
  const { accountId: from_account_id } = holder
  const released = ApiKeyReleased.make({ account_id: from_account_id, to_account_id: account_id, key_id: keyId, prefix })
  const claimed = { account_id, from_account_id, key_id: keyId, prefix, key_sha256: sha256, issued_at: issue.at }
  return Result.succeed({ released: [released], claimed: [ApiKeyClaimed.make(claimed)] })
}

/** Maximum number of claims that an account can try in an hour, including refused claims. */
const maxClaims = 30
const window = Duration.hours(1)

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const list = yield* ApiKeyList
  const crypto = yield* Crypto
  const identity = yield* Identity
  const rateLimiter = yield* RateLimiter
  const refuse = orTooMany(`An account can try to claim at most ${maxClaims} API keys in an hour, including refused attempts`)

  /** Claims a key. Returns the key as the account lists it. */
  const claim = Effect.fn("ClaimApiKey.claim")(
    function* (accountId: string, apiKey: Redacted.Redacted) {
      yield* Effect.flatMap(rateLimiter.acquireSlots([`claim/${accountId}`], maxClaims, window), refuse)
      const { accountId: holderId, keyId } = yield* identity.refresh(apiKey)
      const secret = Redacted.value(apiKey)
      const prefix = prefixOf(secret)
      const claimedKey = { keyId, prefix, sha256: crypto.sha256Hex(secret) }
      if (holderId !== accountId) {
        yield* accounts.changeBoth(holderId, accountId, (holder, claimer, now) =>
          Effect.map(Effect.fromResult(claimKey({ claimer, holder }, claimedKey, now)), ({ claimed, released }) => [
            released,
            claimed
          ])
        )
      }
      const key = (yield* list.all(accountId)).find((one) => one.prefix === prefix)
      // The key was rotated or revoked at the same time.
      return key ?? (yield* new UnknownApiKey({}))
    },
    Effect.catchTag("InvalidApiKey", () => Effect.fail(new UnknownApiKey({}))),
    (claimed, accountId) =>
      // If the account that had the key was closed, the closing revoked the key. If the claiming account was closed, its access
      // token is invalid.
      Effect.catchTag(claimed, "NoSuchAccount", (closed) =>
        Effect.fail(closed.accountId === accountId ? new InvalidAccessToken({}) : new UnknownApiKey({}))
      )
  )

  return { claim }
})

export class ClaimApiKey extends Context.Service<ClaimApiKey, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/keys/ClaimApiKey"
) {
  static readonly layer = Layer.effect(ClaimApiKey, make)
}

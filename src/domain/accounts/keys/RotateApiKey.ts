/** Rotates an API key: replaces its secret. The key keeps its id, usage and receipts. */
import { Context, DateTime, Duration, Effect, Layer, Redacted, Result } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import * as ApiKeyCandidates from "#domain/accounts/keys/ApiKeyCandidates.ts"
import { ApiKeyRotated } from "#domain/accounts/ApiKeyEvents.ts"
import { secretsRefusal } from "#domain/accounts/ApiKeyLimits.ts"
import { ApiKeyNotFound, type ApiKeyReplaced, keyMissing } from "#domain/accounts/keys/RevokeApiKey.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

/** Time for which the former secret stays valid, if the rotation keeps it (`keepsFormer`). */
const rotationOverlap = Duration.hours(24)

/** `prefix` is the prefix of the secret to replace, which must be the current one. */
interface Rotation<Candidate> {
  readonly prefix: string
  readonly candidates: ReadonlyArray<Candidate>
  readonly keepsFormer: boolean
  readonly now: DateTime.Utc
}

interface Rotated<Candidate> {
  readonly candidate: Candidate
  /** Time until which the former secret is valid; null if it became invalid at once. */
  readonly formerUntil: DateTime.Utc | null
  readonly event: DomainEvent
}

/** Rotates the key with a current secret to the first candidate with an unused prefix. Returns null if the account has used the prefixes of all candidates. */
export const rotateKey = <Candidate extends ApiKeyCandidates.KeyCandidate>(
  state: AccountState,
  { candidates, keepsFormer, now, prefix: current }: Rotation<Candidate>
): Result.Result<Rotated<Candidate> | null, ApiKeyNotFound | ApiKeyReplaced | RateLimitExceeded> => {
  const key = state.keys.find((one) => one.prefix === current)
  if (key === undefined) return Result.fail(keyMissing(state, current))
  if (key.revoked) return Result.fail(new ApiKeyNotFound({}))
  const refusal = secretsRefusal(state, now)
  if (refusal !== null) return Result.fail(refusal)
  const candidate = ApiKeyCandidates.firstUnused(state, candidates)
  if (candidate === undefined) return Result.succeed(null)
  const formerUntil = keepsFormer ? DateTime.addDuration(now, rotationOverlap) : null
  const { prefix, sha256: key_sha256 } = candidate
  const facts = { account_id: state.accountId, key_id: key.keyId, prefix, key_sha256, previous_until: formerUntil }
  return Result.succeed({ candidate, formerUntil, event: ApiKeyRotated.make(facts) })
}

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const withCandidates = yield* ApiKeyCandidates.make

  /** Rotates the key whose current secret has the prefix, and returns its new secret. If `keepsFormer` is true, the former secret stays valid for a day. */
  const rotate = Effect.fn("RotateApiKey.rotate")(
    (accountId: string, current: string, keepsFormer: boolean) =>
      withCandidates(accountId, (candidates) =>
        accounts.change(accountId, (account, now) =>
          Effect.map(Effect.fromResult(rotateKey(account, { prefix: current, candidates, keepsFormer, now })), (rotated) => {
            if (rotated === null) return { events: [], value: null }
            const { candidate, event, formerUntil } = rotated
            return { events: [event], value: { key: Redacted.make(candidate.key), prefix: candidate.prefix, formerUntil } }
          })
        )
      ),
    Effect.catchTag("NoSuchAccount", () => Effect.fail(new ApiKeyNotFound({})))
  )

  return { rotate }
})

export class RotateApiKey extends Context.Service<RotateApiKey, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/keys/RotateApiKey"
) {
  static readonly layer = Layer.effect(RotateApiKey, make)
}

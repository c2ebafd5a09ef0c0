/** Issues another API key to an account (rules 3, 42). */
import { Context, type DateTime, Effect, Layer, Redacted, Result } from "effect"
import { InvalidAccessToken } from "#domain/accounts/AccessTokens.ts"
import type { AccountState } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import * as ApiKeyCandidates from "#domain/accounts/keys/ApiKeyCandidates.ts"
import { ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import { keyRefusal } from "#domain/accounts/ApiKeyLimits.ts"
import { ApiKeyList } from "#domain/accounts/keys/ApiKeyList.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

/** A new key with its secret, which is shown once. `prefix` is its id. `label` is the owner's name for it; empty without a name. */
export interface NewKey {
  readonly key: Redacted.Redacted
  readonly prefix: string
  readonly label: string
  readonly issuedAt: DateTime.Utc
}

/** Issues the first candidate with an unused prefix. Returns null if the account has used the prefixes of all candidates. */
export const issueKey = <Candidate extends ApiKeyCandidates.KeyCandidate>(
  state: AccountState,
  { candidates, now }: { readonly candidates: ReadonlyArray<Candidate>; readonly now: DateTime.Utc }
): Result.Result<{ readonly candidate: Candidate; readonly event: DomainEvent } | null, RateLimitExceeded> => {
  const refusal = keyRefusal(state, now)
  if (refusal !== null) return Result.fail(refusal)
  const candidate = ApiKeyCandidates.firstUnused(state, candidates)
  if (candidate === undefined) return Result.succeed(null)
  const { keyId: key_id, prefix, sha256: key_sha256 } = candidate
  return Result.succeed({ candidate, event: ApiKeyIssued.make({ account_id: state.accountId, key_id, prefix, key_sha256 }) })
}

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const list = yield* ApiKeyList
  const withCandidates = yield* ApiKeyCandidates.make

  /** Issues a key with a label. Fails with `InvalidAccessToken` if the account was closed after the token was verified. */
  const issue = Effect.fn("IssueApiKey.issue")(
    (accountId: string, label: string) =>
      withCandidates(accountId, (candidates) =>
        accounts.change(accountId, (account, now) =>
          Effect.map(Effect.fromResult(issueKey(account, { candidates, now })), (issued) => {
            if (issued === null) return { events: [], value: null }
            const { candidate, event } = issued
            const inSameTransaction = () =>
              label === "" ? Effect.void : list.label({ accountId, keyId: candidate.keyId, label })
            const value: NewKey = { key: Redacted.make(candidate.key), prefix: candidate.prefix, label, issuedAt: now }
            return { events: [event], inSameTransaction, value }
          })
        )
      ),
    Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidAccessToken({})))
  )

  return { issue }
})

export class IssueApiKey extends Context.Service<IssueApiKey, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/keys/IssueApiKey"
) {
  static readonly layer = Layer.effect(IssueApiKey, make)
}

/**
 * Generates candidates for a new secret of an API key. The prefix of the secret identifies the key within its account. Only three
 * characters of the prefix are random, so an account with very many keys may need several candidates.
 */
import { Effect } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import * as ApiKey from "#domain/accounts/ApiKey.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"

/**
 * The part of a candidate that decisions read: the id for a new key, the prefix of the secret, and the SHA-256 (hex) of the
 * secret.
 */
export interface KeyCandidate {
  readonly keyId: string
  readonly prefix: string
  readonly sha256: string
}

/** Returns true if a secret of the account has or had the prefix. */
export const hasPrefix = ({ keys }: AccountState, prefix: string): boolean =>
  keys.some(({ secrets }) => secrets.some((secret) => secret.prefix === prefix))

/** Returns the first candidate whose prefix the account has never used. Prefixes of revoked keys count as used. */
export const firstUnused = <Candidate extends KeyCandidate>(state: AccountState, candidates: ReadonlyArray<Candidate>) =>
  candidates.find(({ prefix }) => !hasPrefix(state, prefix))

const candidateCount = 4
const maxDraws = 20

/**
 * Returns a function that calls `attempt` with new candidates until `attempt` returns a value other than null. `attempt` must
 * return null if the account has already used the prefixes of all candidates.
 */
export const make = Effect.map(Crypto, (crypto) => {
  const candidate = Effect.map(ApiKey.generate(crypto), (key) => ({
    key,
    keyId: crypto.uuidV7(),
    prefix: ApiKey.prefixOf(key),
    sha256: crypto.sha256Hex(key)
  }))
  const candidates = Effect.replicateEffect(candidate, candidateCount)

  return Effect.fnUntraced(function* <A, E, R>(
    accountId: string,
    attempt: (candidates: ReadonlyArray<Effect.Success<typeof candidate>>) => Effect.Effect<A | null, E, R>
  ) {
    const result = yield* Effect.repeat(Effect.flatMap(candidates, attempt), {
      until: (value) => value !== null,
      times: maxDraws
    })
    if (result === null) return yield* Effect.die(`No unused key prefix was generated for account ${accountId}`)
    return result
  })
})

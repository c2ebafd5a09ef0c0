/** The API keys of an account: issue, list, revoke (rules 3, 42). */
import { Context, type DateTime, Effect, Layer, Redacted } from "effect"
import { InvalidAccessToken } from "#domain/accounts/AccessTokens.ts"
import { ApiKeyNotFound, issueKey, revokeKey, rotateKey } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import * as ApiKey from "#domain/accounts/ApiKey.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyDirectory } from "#domain/accounts/KeyDirectory.ts"

/** A key with its secret, shown once. `prefix` is its id, `label` the owner's name for it, "" without a label. */
export interface NewKey {
  readonly key: Redacted.Redacted
  readonly prefix: string
  readonly label: string
  readonly issuedAt: DateTime.Utc
}

/** Only three characters of a prefix are random, so an account with very many keys may need several candidates. */
const candidateCount = 4
const maxDraws = 20

const make = Effect.gen(function* () {
  const accounts = yield* AccountStore
  const directory = yield* KeyDirectory
  const crypto = yield* Crypto

  const drawCandidate = Effect.gen(function* () {
    const key = yield* ApiKey.generate(crypto)
    return { key, keyId: crypto.uuidV7(), prefix: ApiKey.prefixOf(key), sha256: crypto.sha256Hex(key) }
  })

  /** Returns the new key; null if the account has used the prefixes of all candidates. */
  const issueOnce = Effect.fnUntraced(function* (accountId: string, label: string) {
    const candidates = yield* Effect.replicateEffect(drawCandidate, candidateCount)
    return yield* accounts.change(accountId, (account, now) =>
      Effect.map(Effect.fromResult(issueKey(account, { candidates, now })), (issued) => {
        if (issued === null) return { events: [], value: null }
        const { candidate, event } = issued
        const inSameTransaction = () =>
          label === "" ? Effect.void : directory.label({ accountId, keyId: candidate.keyId, label })
        const value: NewKey = { key: Redacted.make(candidate.key), prefix: candidate.prefix, label, issuedAt: now }
        return { events: [event], inSameTransaction, value }
      })
    )
  })

  const issue = Effect.fn("ApiKeys.issue")(
    function* (accountId: string, label: string) {
      const issued = yield* Effect.repeat(issueOnce(accountId, label), { until: (key) => key !== null, times: maxDraws })
      if (issued === null) return yield* Effect.die(`No unused key prefix was generated for account ${accountId}`)
      return issued
    },
    // The account was closed after the token was verified.
    Effect.catchTag("NoSuchAccount", () => Effect.fail(new InvalidAccessToken({})))
  )

  /** Returns the new secret; null if the account has used the prefixes of all candidates. */
  const rotateOnce = Effect.fnUntraced(function* (accountId: string, keyId: string, keepsFormer: boolean) {
    const candidates = yield* Effect.replicateEffect(drawCandidate, candidateCount)
    return yield* accounts.change(accountId, (account, now) =>
      Effect.map(Effect.fromResult(rotateKey(account, { keyId, candidates, keepsFormer, now })), (rotated) => {
        if (rotated === null) return { events: [], value: null }
        const { candidate, event, formerUntil } = rotated
        return { events: [event], value: { key: Redacted.make(candidate.key), prefix: candidate.prefix, formerUntil } }
      })
    )
  })

  /** Rotates a key. With `keepsFormer` the former secret stays valid for a day. */
  const rotate = Effect.fn("ApiKeys.rotate")(
    function* (accountId: string, keyId: string, keepsFormer: boolean) {
      const rotateAgain = rotateOnce(accountId, keyId, keepsFormer)
      const rotated = yield* Effect.repeat(rotateAgain, { until: (key) => key !== null, times: maxDraws })
      if (rotated === null) return yield* Effect.die(`No unused key prefix was generated for account ${accountId}`)
      return rotated
    },
    Effect.catchTag("NoSuchAccount", () => Effect.fail(new ApiKeyNotFound({})))
  )

  /** `prefix` is the public id of the key, or its `key_id`. Returns true if the key was active before. */
  const revoke = Effect.fn("ApiKeys.revoke")(
    function* (accountId: string, prefix: string, by: ApiKey.KeyRevoker) {
      return yield* accounts.change(accountId, (account) =>
        Effect.map(Effect.fromResult(revokeKey(account, prefix, by)), (events) => ({ events, value: events.length > 0 }))
      )
    },
    // Closing the account has revoked all its keys.
    Effect.catchTag("NoSuchAccount", () => Effect.succeed(false))
  )

  return { issue, list: directory.list, revoke, rotate }
})

export class ApiKeys extends Context.Service<ApiKeys, Effect.Success<typeof make>>()("vatproof/domain/accounts/ApiKeys") {
  static readonly layer = Layer.effect(ApiKeys, make)
}

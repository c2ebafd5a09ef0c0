/** Passwordless registration: an email address or agent id gets an API key at once (rule 43). */
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { AccountRegistered } from "#domain/accounts/AccountEvents.ts"
import { AccountStore, type Contact } from "#domain/accounts/AccountStore.ts"
import * as ApiKeys from "#domain/accounts/ApiKey.ts"
import { DisposableDomains, DisposableEmail, domainsOf } from "#domain/email/EmailAddress.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { Plans } from "#domain/callers/Plan.ts"
import { orTooMany, RateLimits } from "#domain/callers/RateLimits.ts"

const window = Duration.hours(24)

/** `client` is a keyed hash of the client's address, for the limit. */
export interface Registration extends Contact {
  readonly client: string
}

const make = Effect.fnUntraced(function* (perDay: number) {
  const accounts = yield* AccountStore
  const disposable = yield* DisposableDomains
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const plans = yield* Plans
  const rateLimits = yield* RateLimits

  const refuse = orTooMany(`At most ${perDay} registrations in 24 hours from one address`)

  /** Returns the key once; only its hash is stored. Only a created account takes a slot of the limit, not a refused attempt. */
  const register = Effect.fn("RegisterAgent.register")(function* ({ agentId, client, email }: Registration) {
    if (email !== null && domainsOf(email).some(disposable.has)) return yield* new DisposableEmail({})
    const buckets = [`register/${client}`]
    yield* Effect.flatMap(rateLimits.checkSlots(buckets, perDay, window), refuse)
    const accountId = crypto.uuidV7()
    const keyId = crypto.uuidV7()
    const key = yield* ApiKeys.generate(crypto)
    const facts = [
      AccountRegistered.make({
        account_id: accountId,
        plan: "free",
        with_email: email !== null,
        agent_id_hash: agentId === null ? null : keyedHash.of("agent", agentId)
      }),
      ApiKeys.ApiKeyIssued.make({
        account_id: accountId,
        key_id: keyId,
        prefix: ApiKeys.prefixOf(key),
        key_sha256: crypto.sha256Hex(key)
      })
    ] as const
    const inSameTransaction = () => Effect.flatMap(rateLimits.acquireSlots(buckets, perDay, window), refuse)
    yield* accounts.create(accountId, { email, agentId }, facts, inSameTransaction)
    return { apiKey: Redacted.make(key), plan: "free" as const, quota: plans.byName.free.perMonth }
  })

  return { register }
})

export class RegisterAgent extends Context.Service<RegisterAgent, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/signup/RegisterAgent"
) {
  static readonly layer = (perDay: number) => Layer.effect(RegisterAgent, make(perDay))
}

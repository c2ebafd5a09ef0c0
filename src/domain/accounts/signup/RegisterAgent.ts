/** Registers without a password: returns an API key for an email address or an agent id at once (rules 43, 87). */
import { Context, DateTime, Duration, Effect, Layer, Redacted, Schema } from "effect"
import { AccountRegistered } from "#domain/accounts/AccountEvents.ts"
import { AccountStore, type Contact } from "#domain/accounts/AccountStore.ts"
import * as ApiKey from "#domain/accounts/ApiKey.ts"
import { ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import { Identity } from "#domain/callers/Identity.ts"
import { makeOnce, requireSame } from "#domain/pending/IdempotencyRules.ts"
import { DisposableDomains, DisposableEmail, domainsOf } from "#domain/accounts/email/EmailAddress.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { Plans } from "#domain/callers/PlanLimits.ts"
import { orTooMany, RateLimiter } from "#domain/callers/RateLimiter.ts"
import { computedId } from "#domain/log/ComputedId.ts"

const window = Duration.hours(24)

/**
 * Time in which a repeated registration with the same Idempotency-Key returns the same API key. It is limited because many
 * programs log the Idempotency-Key, and a logged one must not return the API key forever.
 */
const repeatableFor = Duration.hours(24)

/**
 * `client` is a keyed hash of the client's IP address, for the limit. `idempotencyKey` is a secret random text; null without one.
 */
export interface Registration extends Contact {
  readonly client: string
  readonly idempotencyKey: string | null
}

/** The API key of a repeated registration does not work any more. */
export class RegisteredKeyEnded extends Schema.TaggedError<RegisteredKeyEnded>()("RegisteredKeyEnded", {}) {
  override get message() {
    return "The API key of this registration was revoked or replaced; use a new Idempotency-Key for a new registration"
  }
}

/**
 * Returns a function that creates an account with an API key, of which only the hash is stored. Only a created account counts
 * towards the client's limit.
 */
const makeCreate = Effect.fnUntraced(function* (perDay: number) {
  const accounts = yield* AccountStore
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const rateLimiter = yield* RateLimiter
  const refuse = orTooMany(`At most ${perDay} registrations in 24 hours from one IP address`)

  return Effect.fnUntraced(function* ({ agentId, client, email }: Registration, accountId: string, apiKey: string) {
    const buckets = [`register/${client}`]
    yield* Effect.flatMap(rateLimiter.checkSlots(buckets, perDay, window), refuse)
    const facts = [
      AccountRegistered.make({
        account_id: accountId,
        plan: "free",
        with_email: email !== null,
        agent_id_hash: agentId === null ? null : keyedHash.of("agent", agentId)
      }),
      ApiKeyIssued.make({
        account_id: accountId,
        key_id: crypto.uuidV7(),
        prefix: ApiKey.prefixOf(apiKey),
        key_sha256: crypto.sha256Hex(apiKey)
      })
    ] as const
    const inSameTransaction = () => Effect.flatMap(rateLimiter.acquireSlots(buckets, perDay, window), refuse)
    yield* accounts.create(accountId, { email, agentId }, facts, inSameTransaction)
  })
})

const make = Effect.fnUntraced(function* (perDay: number) {
  const accounts = yield* AccountStore
  const create = yield* makeCreate(perDay)
  const crypto = yield* Crypto
  const disposable = yield* DisposableDomains
  const identity = yield* Identity
  const keyedHash = yield* KeyedHash
  const once = yield* makeOnce
  const plans = yield* Plans

  /**
   * Computes the API key of a registration with an Idempotency-Key. The same registration always has the same key. Only this
   * installation can compute it.
   */
  const computedKey = ({ agentId, client, email, idempotencyKey }: Registration) => {
    const text = JSON.stringify([client, idempotencyKey, email, agentId])
    const hex = keyedHash.of("registration", `1${text}`) + keyedHash.of("registration", `2${text}`)
    const key = ApiKey.fromEntropy(Uint8Array.from(hex.match(/../gu) ?? [], (byte) => Number.parseInt(byte, 16)))
    return key === null
      ? Effect.die("No API key could be computed for a registration: too few bytes of the keyed hash are usable")
      : Effect.succeed(key)
  }

  /**
   * Returns true if the request repeats an earlier registration. Fails if that registration had other content or is older than 24
   * hours, or if its API key has ended.
   */
  const isRepeated = Effect.fnUntraced(function* (accountId: string, apiKey: string) {
    const before = yield* accounts.findRegistration(accountId)
    if (before === null) return false
    const isOver = DateTime.isLessThan(DateTime.addDuration(before.at, repeatableFor), yield* DateTime.now)
    yield* requireSame(isOver ? null : before.keySha256, crypto.sha256Hex(apiKey))
    yield* Effect.catchTag(identity.refresh(Redacted.make(apiKey)), "InvalidApiKey", () =>
      Effect.fail(new RegisteredKeyEnded({}))
    )
    return true
  })

  /** Creates the account if no earlier request has created it. Returns true if the request repeats an earlier request. */
  const createOnce = Effect.fnUntraced(function* (registration: Registration, accountId: string, apiKey: string) {
    const isReplayed = isRepeated(accountId, apiKey)
    if (yield* isReplayed) return true
    return yield* once(
      accountId,
      Effect.flatMap(isReplayed, (replayed) =>
        replayed ? Effect.succeed(true) : Effect.as(create(registration, accountId, apiKey), false)
      )
    )
  })

  /**
   * Registers an account and returns its API key. `isReplayed` is true if an
   * earlier request with the same Idempotency-Key registered the account.
   */
  const register = Effect.fn("RegisterAgent.register")(function* (registration: Registration) {
    const { client, email, idempotencyKey } = registration
    if (email !== null && domainsOf(email).some(disposable.has)) return yield* new DisposableEmail({})
    const isOnce = idempotencyKey !== null
    const accountId = isOnce ? computedId(crypto, "account", client, idempotencyKey) : crypto.uuidV7()
    const key = isOnce ? yield* computedKey(registration) : yield* ApiKey.generate(crypto)
    const isReplayed = yield* isOnce
      ? createOnce(registration, accountId, key)
      : Effect.as(create(registration, accountId, key), false)
    return { apiKey: Redacted.make(key), plan: "free" as const, quota: plans.byName.free.perMonth, isReplayed }
  })

  return { register }
})

export class RegisterAgent extends Context.Service<RegisterAgent, Effect.Success<ReturnType<typeof make>>>()(
  "vatproof/domain/accounts/signup/RegisterAgent"
) {
  static readonly layer = (perDay: number) => Layer.effect(RegisterAgent, make(perDay))
}

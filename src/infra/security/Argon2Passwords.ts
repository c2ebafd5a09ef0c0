/** Hashes passwords with Argon2id, in the PHC string format, which includes the parameters. */
import { timingSafeEqual } from "node:crypto"
import { Effect, Layer, Redacted, Schema } from "effect"
import { type CryptoError, Kdf } from "effect/crypto"
import { Base64 } from "effect/encoding"
import { Passwords, PasswordsBusy, type PasswordWork } from "#domain/accounts/login/Passwords.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"
import * as CommonPasswords from "#infra/security/CommonPasswords.ts"

/**
 * The parameters of new hashes: the minimum of the OWASP Password Storage Cheat Sheet (19 MiB, 2 passes, 1 lane; read 2026-11).
 * Stored hashes keep their own parameters.
 */
const cost: Cost = { memory: 19_456, passes: 2, parallelism: 1 }
/** The lowest cost of Argon2. A hash takes less than a millisecond. */
const leastCost: Cost = { memory: 8, passes: 1, parallelism: 1 }
const saltBytes = 16
const hashBytes = 32

/**
 * Limits of the hashing queue. Two hashes are computed at a time: each takes 19 MiB and one of Node's four worker threads, which
 * file access and DNS also need. The queue admits `capacity` attempts, which take a few seconds together. `perKey` limits the
 * attempts from one IP address, which a whole office may share.
 */
const bounds = { concurrency: 2, capacity: 100, perKey: 16 }
const retryAfterSeconds = 2

interface Cost {
  readonly memory: number
  readonly passes: number
  readonly parallelism: number
}

interface Stored {
  readonly cost: Cost
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

/** This version of Node lacks Argon2id. */
export class PasswordHashingUnsupported extends Schema.TaggedError<PasswordHashingUnsupported>()("PasswordHashingUnsupported", {
  cause: Schema.Defect()
}) {
  override get message() {
    return "Passwords are hashed with Argon2id, which needs Node 24.7 or later"
  }
}

const make = Effect.gen(function* () {
  const kdf = yield* Kdf.Kdf
  const crypto = yield* Crypto
  const queue = yield* FairQueue.make(bounds)

  /**
   * Hashes a password. Normalizes it with NFKC, because keyboards compose the same character differently (NIST SP 800-63B-4,
   * 3.1.1.2, read 2026-11).
   */
  const derive = (password: Redacted.Redacted, cost: Cost, salt: Uint8Array, length: number) =>
    kdf.derive(Kdf.argon2id(cost), new TextEncoder().encode(Redacted.value(password).normalize("NFKC")), { salt, length })

  /**
   * Runs `work` in one of the two slots of the queue. The work is uninterruptible, because it is short and an interruption could
   * leak the slot.
   */
  const inSlot = <A>(client: string, work: Effect.Effect<A, CryptoError.CryptoError>) =>
    Effect.uninterruptible(queue.inSlot(client, work)).pipe(Effect.catchTag("CryptoError", Effect.die))

  const makeHash = Effect.fnUntraced(function* (password: Redacted.Redacted) {
    const salt = crypto.randomBytes(saltBytes)
    return { cost, salt, hash: yield* derive(password, cost, salt, hashBytes) } satisfies Stored
  })

  /**
   * A random hash that matches no password. The login to an unknown account compares the password with this hash, so that all
   * logins take the same time.
   */
  const dummyHash: Stored = { cost, salt: crypto.randomBytes(saltBytes), hash: crypto.randomBytes(hashBytes) }

  // Computes one hash, so that a Node without Argon2id fails at the start and not at the first login.
  yield* derive(Redacted.make(""), leastCost, crypto.randomBytes(saltBytes), hashBytes).pipe(
    Effect.catchTag("CryptoError", (error) =>
      error.reason._tag === "Unsupported" ? Effect.fail(new PasswordHashingUnsupported({ cause: error })) : Effect.die(error)
    )
  )

  const workOf = (client: string): PasswordWork => ({
    hash: Effect.fn("Argon2Passwords.hash")((password: Redacted.Redacted) =>
      Effect.map(inSlot(client, makeHash(password)), (stored) => Redacted.make(format(stored)))
    ),
    matches: Effect.fn("Argon2Passwords.matches")(function* (password: Redacted.Redacted, hash: Redacted.Redacted | null) {
      const stored = hash === null ? dummyHash : yield* parse(Redacted.value(hash))
      const derived = yield* inSlot(client, derive(password, stored.cost, stored.salt, stored.hash.length))
      return timingSafeEqual(derived, stored.hash) && hash !== null
    })
  })

  return Passwords.of({
    refuseCommon: yield* CommonPasswords.make,
    attempt: (client, work) =>
      queue.admit(
        client,
        Effect.suspend(() => work(workOf(client))),
        (bound) => Effect.fail(bound === "perKey" ? tooMany : new PasswordsBusy({}))
      )
  })
})

const tooMany = new RateLimitExceeded({
  message: `A client address may have at most ${bounds.perKey} logins and sign-ups in progress; retry after ${retryAfterSeconds} seconds`,
  retryAfterSeconds
})

const phc = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([\w+/]{11,86})\$([\w+/]{22,86})$/u

const format = ({ cost, hash, salt }: Stored) =>
  `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${unpadded(salt)}$${unpadded(hash)}`

const unpadded = (bytes: Uint8Array) => Base64.encode(bytes).replace(/=+$/u, "")

const parse = Effect.fnUntraced(
  function* (text: string) {
    const [, memory, passes, parallelism, salt, hash] = phc.exec(text) ?? []
    if (salt === undefined || hash === undefined)
      return yield* Effect.die("A stored password hash is not in the PHC string format")
    const bytes = (base64: string) => Effect.fromResult(Base64.decode(base64 + "=".repeat(-base64.length & 3)))
    return {
      cost: { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
      salt: yield* bytes(salt),
      hash: yield* bytes(hash)
    } satisfies Stored
  },
  Effect.catchTag("EncodingError", Effect.die)
)

/** Fails with `PasswordHashingUnsupported` if Node lacks Argon2id. */
export const layer = Layer.effect(Passwords, make)

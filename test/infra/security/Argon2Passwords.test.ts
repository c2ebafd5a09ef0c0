import * as PlatformCrypto from "@effect/platform-node/NodeCrypto"
import { Deferred, Effect, Fiber, Layer, MutableRef, Redacted } from "effect"
import { Kdf } from "effect/crypto"
import { Passwords, PasswordsBusy } from "#domain/accounts/login/Passwords.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import * as Argon2 from "#infra/security/Argon2Passwords.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"
import { assert, describe, fresh, it } from "#test/support/Test.ts"

const layer = Argon2.layer.pipe(Layer.provide([PlatformCrypto.layerKdf, NodeCrypto.layer]))

/** Functions that hash and compare passwords as attempts of one client. */
const attempting = Effect.map(Passwords, ({ attempt }) => ({
  hash: (password: Redacted.Redacted) => attempt("client", ({ hash }) => hash(password)),
  matches: (password: Redacted.Redacted, stored: Redacted.Redacted | null) =>
    attempt("client", ({ matches }) => matches(password, stored))
}))

/** Returns `attempting`, and `takeNotes`, which returns and clears the recorded parameters of the computed hashes. */
const watched = Effect.gen(function* () {
  const derivations = MutableRef.make<ReadonlyArray<string>>([])
  const kdf = yield* Kdf.Kdf
  const noting = Kdf.Kdf.of({
    derive: (algorithm, secret, options) => {
      MutableRef.update(derivations, (before) => [...before, JSON.stringify([algorithm, options.salt.length, options.length])])
      return kdf.derive(algorithm, secret, options)
    }
  })
  const passwords = yield* Effect.provide(
    attempting,
    Argon2.layer.pipe(Layer.provide([Layer.succeed(Kdf.Kdf, noting), NodeCrypto.layer]))
  )
  MutableRef.set(derivations, [])
  return { passwords, takeNotes: Effect.sync(() => MutableRef.getAndSet(derivations, [])) }
}).pipe(Effect.provide(PlatformCrypto.layerKdf))

const text = (password: string) => Redacted.make(password)

const own = fresh(layer)

describe("a password", () => {
  own.effect("is hashed with Argon2id, its own salt and at least the cost that OWASP requires", function* () {
    const { hash } = yield* attempting
    const first = Redacted.value(yield* hash(text("correct horse")))
    const second = Redacted.value(yield* hash(text("correct horse")))
    assert.match(first, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/u)
    assert.notStrictEqual(first, second)
    assert.notInclude(first, "correct")
  })

  own.effect("matches its hash, and no other password does", function* () {
    const { hash, matches } = yield* attempting
    const stored = yield* hash(text("correct horse"))
    assert.isTrue(yield* matches(text("correct horse"), stored))
    for (const wrong of ["correct hors", "correct horse ", "Correct horse", ""]) {
      assert.isFalse(yield* matches(text(wrong), stored), wrong)
    }
  })

  own.effect("matches its hash in every Unicode composition", function* () {
    const { hash, matches } = yield* attempting
    const stored = yield* hash(text("z\u00fcrich ist sch\u00f6n"))
    assert.isTrue(yield* matches(text("zu\u0308rich ist scho\u0308n"), stored))
  })

  own.effect("is compared up to its last character, even with 256 characters", function* () {
    const { hash, matches } = yield* attempting
    const stored = yield* hash(text("x".repeat(256)))
    assert.isTrue(yield* matches(text("x".repeat(256)), stored))
    assert.isFalse(yield* matches(text("x".repeat(255)), stored))
  })

  own.effect("matches a hash with other cost parameters, which are stored in the hash", function* () {
    const { matches } = yield* attempting
    // A test vector of the reference implementation (phc-winner-argon2, src/test.c).
    const stored = Redacted.make("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
    assert.isTrue(yield* matches(text("password"), stored))
  })

  it.effect("is checked with the same amount of work whether it is right, wrong or has no stored hash", function* () {
    const { passwords, takeNotes } = yield* watched
    const stored = yield* passwords.hash(text("correct horse"))
    yield* takeNotes
    assert.isTrue(yield* passwords.matches(text("correct horse"), stored))
    const right = yield* takeNotes
    assert.isFalse(yield* passwords.matches(text("a wrong one"), stored))
    const wrong = yield* takeNotes
    assert.isFalse(yield* passwords.matches(text("a wrong one"), null))
    const unknown = yield* takeNotes
    assert.lengthOf(right, 1)
    assert.deepStrictEqual(wrong, right)
    assert.deepStrictEqual(unknown, right)
  })
})

describe("the hashing of passwords", () => {
  it.effect(
    "computes two hashes at a time, accepts at most 100 attempts in total and 16 per client, and serves the clients in turn",
    function* () {
      const mayGo = yield* Deferred.make<void>()
      const running = MutableRef.make(0)
      const most = MutableRef.make(0)
      const held = MutableRef.make(false)
      const slow = Kdf.Kdf.of({
        derive: (_algorithm, _secret, { length }) =>
          Effect.gen(function* () {
            if (!held.current) return new Uint8Array(length)
            MutableRef.set(most, Math.max(most.current, MutableRef.incrementAndGet(running)))
            yield* Deferred.await(mayGo)
            MutableRef.decrement(running)
            return new Uint8Array(length)
          })
      })
      const passwords = yield* Effect.provide(
        Passwords,
        Argon2.layer.pipe(Layer.provide([Layer.succeed(Kdf.Kdf, slow), NodeCrypto.layer]))
      )
      MutableRef.set(held, true)
      const done: Array<string> = []
      const ask = (client: string) =>
        Effect.forkChild(
          Effect.tap(
            passwords.attempt(client, ({ matches }) => matches(text("any"), null)),
            () => Effect.sync(() => done.push(client))
          ),
          { startImmediately: true }
        )
      const clients = ["a", "b", "c", "d", "e", "f"]
      const waiting = yield* Effect.forEach(
        clients.flatMap((client) => Array.from({ length: 16 }, () => client)),
        ask
      )
      const refused = (client: string) => Effect.flip(passwords.attempt(client, () => Effect.die("it is admitted")))
      assert.instanceOf(yield* refused("a"), RateLimitExceeded)
      const last = yield* Effect.forEach(["g", "h", "g", "h"], ask)
      assert.instanceOf(yield* refused("i"), PasswordsBusy)
      yield* Deferred.succeed(mayGo, undefined)
      yield* Effect.forEach([...waiting, ...last], Fiber.join)
      assert.strictEqual(most.current, 2)
      assert.isBelow(done.indexOf("g"), 2 * clients.length)
      yield* Effect.flatMap(ask("a"), Fiber.join)
    }
  )

  it.effect("fails with an error that names the required version if Node lacks Argon2id", function* () {
    const built = Effect.provide(Passwords, Argon2.layer.pipe(Layer.provide([Kdf.layerWebCrypto, NodeCrypto.layer])))
    const error = yield* Effect.flip(Effect.asVoid(built))
    assert.strictEqual(error.message, "Passwords are hashed with Argon2id, which needs Node 24.7 or later")
  })
})

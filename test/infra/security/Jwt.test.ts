import { Clock, DateTime, Effect, Redacted, Schema } from "effect"
import { TestClock } from "effect/testing"
import { createHmac, generateKeyPairSync, sign } from "node:crypto"
import { AccessTokens as Tokens } from "#domain/accounts/AccessTokens.ts"
import * as Jwt from "#infra/security/Jwt.ts"
import { assert, describe, it } from "#test/support/Test.ts"

const accountId = "0192f0c0-0000-7000-8000-000000000001"
const secret = "first secret, which signs: 0123456789"
const oldSecret = "second secret, which only verifies: 0123456789"
const issuer = "vatproof"

const layerOf = (...secrets: readonly [string, ...Array<string>]) =>
  Jwt.layer({ issuer, secrets: [Redacted.make(secrets[0]), ...secrets.slice(1).map((text) => Redacted.make(text))] })

const session = { accountId, epoch: 3 }

const issueWith = (layer: ReturnType<typeof layerOf>) =>
  Effect.flatMap(Tokens, ({ issue }) => Effect.map(issue(session), Redacted.value)).pipe(Effect.provide(layer))

const verifyWith = (layer: ReturnType<typeof layerOf>, token: string) =>
  Effect.flatMap(Tokens, ({ verify }) => verify(Redacted.make(token))).pipe(Effect.provide(layer))

const ours = layerOf(secret, oldSecret)
const isRefused = (token: string) => Effect.map(Effect.exit(verifyWith(ours, token)), (exit) => exit._tag === "Failure")

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))
const part = (token: string, index: number) => decode(Buffer.from(token.split(".")[index] ?? "", "base64url").toString())

/** Returns a token with the given header and claims, signed with HMAC by the given key and hash. */
const forge = (header: object, claims: object, key: string | Uint8Array = secret, hash = "sha256") => {
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${createHmac(hash, key).update(signed).digest("base64url")}`
}

const claimsNow = Effect.map(Clock.currentTimeMillis, (millis) => {
  const now = Math.floor(millis / 1000)
  return { iss: issuer, sub: accountId, epoch: 3, iat: now, exp: now + 86_400 }
})

const header = { alg: "HS256", typ: "JWT" }

describe("an access token", () => {
  it.effect("contains its issuer, account, epoch and times, and nothing else", function* () {
    yield* TestClock.setTime(DateTime.toEpochMillis(DateTime.makeUnsafe("2026-11-20T12:00:00.900Z")))
    const token = yield* issueWith(ours)
    assert.deepStrictEqual(yield* part(token, 0), { alg: "HS256", typ: "JWT" })
    const iat = DateTime.toEpochMillis(DateTime.makeUnsafe("2026-11-20T12:00:00Z")) / 1000
    assert.deepStrictEqual(yield* part(token, 1), { iss: "vatproof", sub: accountId, epoch: 3, iat, exp: iat + 86_400 })
    assert.deepStrictEqual(yield* verifyWith(ours, token), session)
  })

  it.effect("is valid for 24 hours", function* () {
    const token = yield* issueWith(ours)
    yield* TestClock.adjust("86399 seconds")
    assert.isFalse(yield* isRefused(token))
    yield* TestClock.adjust("1 second")
    assert.isTrue(yield* isRefused(token))
  })

  it.effect("is signed with the first of several secrets, and is accepted if any of these secrets signed it", function* () {
    const rotated = layerOf("a newer secret: 0123456789 0123456789", secret)
    const before = yield* issueWith(layerOf(secret))
    assert.deepStrictEqual(yield* verifyWith(rotated, before), session)
    const after = yield* issueWith(rotated)
    assert.strictEqual((yield* Effect.exit(verifyWith(layerOf(secret), after)))._tag, "Failure")
    assert.deepStrictEqual(yield* verifyWith(ours, forge(header, yield* claimsNow, oldSecret)), session)
  })
})

describe("a token that the service has not issued", () => {
  it.effect("is accepted if it is signed with the right secret", function* () {
    assert.isFalse(yield* isRefused(forge(header, yield* claimsNow)))
  })

  it.effect("is rejected if it has no signature", function* () {
    const claims = yield* claimsNow
    for (const alg of ["none", "None", "NONE", "nOnE", ""]) {
      const unsigned = `${encode({ alg, typ: "JWT" })}.${encode(claims)}`
      assert.isTrue(yield* isRefused(`${unsigned}.`), alg)
      assert.isTrue(yield* isRefused(unsigned), alg)
      assert.isTrue(yield* isRefused(forge({ alg, typ: "JWT" }, claims)), alg)
    }
    assert.isTrue(yield* isRefused(`${encode(header)}.${encode(claims)}.`))
  })

  it.effect("is rejected if it is signed with another algorithm, even with the right secret", function* () {
    const claims = yield* claimsNow
    assert.isTrue(yield* isRefused(forge({ ...header, alg: "HS384" }, claims, secret, "sha384")))
    assert.isTrue(yield* isRefused(forge({ ...header, alg: "HS512" }, claims, secret, "sha512")))
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const signed = `${encode({ ...header, alg: "RS256" })}.${encode(claims)}`
    assert.isTrue(yield* isRefused(`${signed}.${sign("sha256", Buffer.from(signed), privateKey).toString("base64url")}`))
    const pem = publicKey.export({ format: "pem", type: "spki" }).toString()
    assert.isTrue(yield* isRefused(forge(header, claims, pem)))
  })

  it.effect("is rejected if it is signed with another secret, or contains its key in the header", function* () {
    const claims = yield* claimsNow
    const other = "a secret that we do not have: 0123456789"
    assert.isTrue(yield* isRefused(forge(header, claims, other)))
    assert.isTrue(yield* isRefused(forge(header, claims, "")))
    const jwk = { kty: "oct", k: Buffer.from(other).toString("base64url") }
    assert.isTrue(yield* isRefused(forge({ ...header, jwk }, claims, other)))
    assert.isTrue(yield* isRefused(forge({ ...header, kid: "../../dev/null" }, claims, "")))
    assert.isTrue(yield* isRefused(forge({ ...header, crit: ["b64"], b64: false }, claims)))
  })

  it.effect("is rejected if its claims are changed, missing or of another issuer", function* () {
    const claims = yield* claimsNow
    const [first, , signature] = (yield* issueWith(ours)).split(".")
    const changed = { ...claims, sub: "0192f0c0-0000-7000-8000-000000000002" }
    assert.isTrue(yield* isRefused(`${first}.${encode(changed)}.${signature}`))
    const wrong: ReadonlyArray<object> = [
      { ...claims, iss: "stranger" },
      { ...claims, iss: [issuer] },
      { ...claims, aud: "stranger" },
      { ...claims, exp: claims.iat },
      { ...claims, exp: String(claims.exp) },
      { ...claims, exp: undefined },
      { ...claims, iat: undefined },
      { ...claims, iss: undefined },
      { ...claims, sub: undefined },
      { ...claims, sub: "' OR 1 = 1" },
      { ...claims, sub: [accountId] },
      { ...claims, nbf: claims.iat + 60 },
      []
    ]
    for (const one of wrong) assert.isTrue(yield* isRefused(forge(header, one)), JSON.stringify(one))
  })

  it.effect("is rejected if it is not a well-formed JWT", function* () {
    const token = yield* issueWith(ours)
    const wrong = ["", ".", "..", "...", "a.b.c", token.slice(0, -1), `${token}.${token}`, ` ${token}`, "\u0000", "ü.ü.ü"]
    for (const one of wrong) assert.isTrue(yield* isRefused(one), one)
  })
})

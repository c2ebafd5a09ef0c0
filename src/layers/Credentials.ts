/** Authentication of people: passwords and access tokens. */
import * as PlatformCrypto from "@effect/platform-node/NodeCrypto"
import { Array as Arr, Effect, Layer, Option, Path, Redacted } from "effect"
import { AppConfig, InvalidSetting } from "#infra/config/AppConfig.ts"
import * as Argon2Passwords from "#infra/security/Argon2Passwords.ts"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"
import * as Jwt from "#infra/security/Jwt.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/**
 * Returns the secrets that sign access tokens: JWT_SECRET or, with the
 * embedded database, a secret generated in the data directory.
 */
export const jwtSecrets = Effect.gen(function* () {
  const config = yield* AppConfig
  if (Option.isSome(config.jwtSecrets)) {
    const short = config.jwtSecrets.value.some((secret) => Redacted.value(secret).length < 32)
    if (short) yield* Effect.logWarning("A secret in JWT_SECRET has fewer than 32 characters: use a longer one (RFC 7518, 3.2)")
    return config.jwtSecrets.value
  }
  if (Option.isSome(config.databaseUrl)) {
    const message =
      "DATABASE_URL is set, so JWT_SECRET is required: set the same secret of at least 32 characters on every replica"
    return yield* new InvalidSetting({ message })
  }
  const path = yield* Path.Path
  return Arr.of(yield* GeneratedSecret.make(path.resolve(config.dataDir), "jwt-secret"))
})

/**
 * Provides passwords and access tokens. The layer is built before the database layer, so that a start without a required JWT_SECRET
 * fails at once.
 */
export const credentials = Layer.unwrap(
  Effect.gen(function* () {
    const { serviceName } = yield* AppConfig
    return Jwt.layer({ issuer: serviceName, secrets: yield* jwtSecrets })
  })
).pipe(Layer.merge(Argon2Passwords.layer.pipe(Layer.provide(PlatformCrypto.layerKdf))), Layer.provide(NodeCrypto.layer))

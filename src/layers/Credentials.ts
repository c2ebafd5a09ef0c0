/** Authentication of people: passwords and access tokens. */
import * as PlatformCrypto from "@effect/platform-node/NodeCrypto"
import { Array as Arr, Effect, Layer, Option, Path, Redacted } from "effect"
import { AppConfig, InvalidSetting } from "#infra/config/AppConfig.ts"
import * as Argon2Passwords from "#infra/security/Argon2Passwords.ts"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"
import * as Jwt from "#infra/security/Jwt.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/** The secrets of access tokens: JWT_SECRET, or a generated one beside the embedded database. */
const jwtSecrets = Effect.gen(function* () {
  const config = yield* AppConfig
  if (Option.isSome(config.jwtSecrets)) {
    const short = config.jwtSecrets.value.some((secret) => Redacted.value(secret).length < 32)
    if (short) yield* Effect.logWarning("A secret in JWT_SECRET has fewer than 32 characters: use a longer one (RFC 7518, 3.2)")
    return config.jwtSecrets.value
  }
  if (Option.isSome(config.databaseUrl)) {
    const message = "JWT_SECRET is needed with DATABASE_URL: every replica signs with the same one, of 32 characters or more"
    return yield* new InvalidSetting({ message })
  }
  const path = yield* Path.Path
  return Arr.of(yield* GeneratedSecret.make(path.resolve(config.dataDir), "jwt-secret"))
})

/** Authentication of people. Built first, because the service cannot start without it. */
export const credentials = Layer.unwrap(
  Effect.gen(function* () {
    const { serviceName } = yield* AppConfig
    return Jwt.layer({ issuer: serviceName, secrets: yield* jwtSecrets })
  })
).pipe(Layer.merge(Argon2Passwords.layer.pipe(Layer.provide(PlatformCrypto.layerKdf))), Layer.provide(NodeCrypto.layer))

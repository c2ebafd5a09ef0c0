/** How people prove who they are: passwords and access tokens. */
import * as PlatformCrypto from "@effect/platform-node/NodeCrypto"
import { Array as Arr, Effect, Layer, Option, Path, Redacted } from "effect"
import { AppConfig, InvalidSetting } from "#infra/config/AppConfig.ts"
import * as Argon2Passwords from "#infra/security/Argon2Passwords.ts"
import * as GeneratedSecret from "#infra/security/GeneratedSecret.ts"
import * as Jwt from "#infra/security/Jwt.ts"
import * as NodeCrypto from "#infra/security/NodeCrypto.ts"

/** The secrets of access tokens: JWT_SECRET, or one that is made once and kept beside the embedded database. */
const jwtSecrets = Effect.gen(function* () {
  const config = yield* AppConfig
  if (Option.isSome(config.jwtSecrets)) {
    const short = config.jwtSecrets.value.some((secret) => Redacted.value(secret).length < 32)
    if (short) yield* Effect.logWarning("JWT_SECRET has a secret of less than 32 characters: take a longer one (RFC 7518, 3.2)")
    return config.jwtSecrets.value
  }
  if (Option.isSome(config.databaseUrl)) {
    const message = "JWT_SECRET is needed with DATABASE_URL: every replica signs with the same one, of 32 characters or more"
    return yield* new InvalidSetting({ message })
  }
  const path = yield* Path.Path
  return Arr.of(yield* GeneratedSecret.make(path.resolve(config.dataDir), "jwt-secret"))
})

/** How people prove who they are. It is built first: without it nothing need start. */
export const credentials = Layer.unwrap(
  Effect.gen(function* () {
    const { serviceName } = yield* AppConfig
    return Jwt.layer({ issuer: serviceName, secrets: yield* jwtSecrets })
  })
).pipe(Layer.merge(Argon2Passwords.layer.pipe(Layer.provide(PlatformCrypto.layerKdf))), Layer.provide(NodeCrypto.layer))

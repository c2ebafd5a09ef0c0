/** Randomness from the platform's WebCrypto. */
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { Randomness } from "#domain/Randomness.ts"

export const layer = Layer.effect(
  Randomness,
  Effect.gen(function* () {
    const random = yield* SecureRandom.SecureRandom
    return { bytes: random.randomBytes, uuidV7: random.uuidV7() }
  })
).pipe(Layer.provide(SecureRandom.layerWebCrypto))

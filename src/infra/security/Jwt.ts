/** Access tokens as JWTs, signed with HS256 (rule 50). */
import { createSecretKey } from "node:crypto"
import { Array as Arr, Clock, DateTime, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { jwtVerify, SignJWT } from "jose"
import { accessTokenLifetime, AccessTokens, InvalidAccessToken, type Session } from "#domain/accounts/AccessTokens.ts"

/**
 * Every token contains the `issuer`. The first of `secrets` signs new tokens. All `secrets` verify tokens, so that an operator
 * can rotate the signing secret while tokens of the previous secret are valid.
 */
export interface JwtOptions {
  readonly issuer: string
  readonly secrets: Arr.NonEmptyReadonlyArray<Redacted.Redacted>
}

const algorithm = "HS256"

/**
 * The claims of this service's tokens. They have no audience; a token with an audience is for another service (RFC 7519, 4.1.3).
 */
const Claims = Schema.Struct({
  sub: Schema.String.check(Schema.isUUID()),
  epoch: Schema.Int,
  aud: Schema.optionalKey(Schema.Undefined)
})
const claimsOf = Schema.decodeUnknownOption(Claims)

const make = ({ issuer, secrets }: JwtOptions) => {
  const keys = Arr.map(secrets, (secret) => createSecretKey(Redacted.value(secret), "utf8"))

  const issue = Effect.fn("Jwt.issue")(function* ({ accountId, epoch }: Session) {
    const issuedAt = Math.floor((yield* Clock.currentTimeMillis) / 1000)
    const token = new SignJWT({ epoch })
      .setProtectedHeader({ alg: algorithm, typ: "JWT" })
      .setIssuer(issuer)
      .setSubject(accountId)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + Duration.toSeconds(accessTokenLifetime))
    return Redacted.make(yield* Effect.promise(() => token.sign(keys[0])))
  })

  const verify = Effect.fn("Jwt.verify")(function* (token: Redacted.Redacted) {
    const currentDate = DateTime.toDateUtc(yield* DateTime.now)
    const options = { algorithms: [algorithm], issuer, requiredClaims: ["sub", "iat", "exp"], currentDate }
    for (const key of keys) {
      const verified = yield* Effect.option(Effect.tryPromise(() => jwtVerify(Redacted.value(token), key, options)))
      const claims = Option.flatMap(verified, ({ payload }) => claimsOf(payload))
      if (Option.isSome(claims)) return { accountId: claims.value.sub, epoch: claims.value.epoch }
    }
    return yield* new InvalidAccessToken({})
  })

  return AccessTokens.of({ issue, verify })
}

export const layer = (options: JwtOptions) => Layer.sync(AccessTokens, () => make(options))

/** The tokens that people get by logging in and send as `Authorization: Bearer` (INTERFACE 5, DECISIONS 33). */
import { Context, Duration, type Effect, type Redacted, Schema } from "effect"

/** The token is missing, malformed, forged, of another issuer or expired, or its account is gone; which of these is nobody's business. */
export class InvalidAccessToken extends Schema.TaggedError<InvalidAccessToken>()("InvalidAccessToken", {}) {
  override get message() {
    return "Send a valid token as Authorization: Bearer <token>. POST /v1/auth/login gives one that lasts 24 hours"
  }
}

export const accessTokenLifetime = Duration.hours(24)

export class AccessTokens extends Context.Service<
  AccessTokens,
  {
    readonly issue: (accountId: string) => Effect.Effect<Redacted.Redacted>
    /** The id of the account that the token was issued to. */
    readonly verify: (token: Redacted.Redacted) => Effect.Effect<string, InvalidAccessToken>
  }
>()("vatproof/domain/AccessTokens") {}

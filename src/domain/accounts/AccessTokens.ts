/** The tokens that people get by logging in and send as `Authorization: Bearer` (rule 50). */
import { Context, Duration, type Effect, type Redacted, Schema } from "effect"

/** The token is missing, malformed, forged, of another issuer expired or ended by a new password, or its account is gone; which of these is nobody's business. */
export class InvalidAccessToken extends Schema.TaggedError<InvalidAccessToken>()("InvalidAccessToken", {}) {
  override get message() {
    return "Send a valid token as Authorization: Bearer <token>. POST /v1/auth/login gives one that lasts 24 hours"
  }
}

export const accessTokenLifetime = Duration.hours(24)

/** The login of an account. A new password begins a new epoch, which ends the sessions of older ones. */
export interface Session {
  readonly accountId: string
  readonly epoch: number
}

export class AccessTokens extends Context.Service<
  AccessTokens,
  {
    readonly issue: (session: Session) => Effect.Effect<Redacted.Redacted>
    /** What the token was issued for. Whether its epoch is over the account says. */
    readonly verify: (token: Redacted.Redacted) => Effect.Effect<Session, InvalidAccessToken>
  }
>()("vatproof/domain/accounts/AccessTokens") {}

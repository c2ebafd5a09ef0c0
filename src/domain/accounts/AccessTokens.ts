/** Access tokens. A login returns one, and clients send it as `Authorization: Bearer` (rule 50). */
import { Context, Duration, type Effect, type Redacted, Schema } from "effect"

/**
 * The token is missing, malformed, forged or expired, or another service issued it, or its session has ended, or its account is
 * closed. Clients are not told which.
 */
export class InvalidAccessToken extends Schema.TaggedError<InvalidAccessToken>()("InvalidAccessToken", {}) {
  override get message() {
    return "Send a valid token as Authorization: Bearer <token>. POST /v1/auth/login returns a token that is valid for 24 hours"
  }
}

export const accessTokenLifetime = Duration.hours(24)

/**
 * A login session of an account. Each new password increments the `epoch` of the account; sessions of older epochs are invalid.
 */
export interface Session {
  readonly accountId: string
  readonly epoch: number
}

export class AccessTokens extends Context.Service<
  AccessTokens,
  {
    readonly issue: (session: Session) => Effect.Effect<Redacted.Redacted>
    /**
     * Returns the session of a valid token. The caller must compare the epoch of the session with the current epoch of the
     * account.
     */
    readonly verify: (token: Redacted.Redacted) => Effect.Effect<Session, InvalidAccessToken>
  }
>()("vatproof/domain/accounts/AccessTokens") {}

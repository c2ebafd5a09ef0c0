/** Hashes and checks passwords with a slow hash (rule 51). */
import { Context, type Effect, type Redacted, Schema } from "effect"
import { characters, whyUnreadable } from "#domain/text/PlainText.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"

const length = { min: 8, max: 256 }

/** A new password: 8 to 256 characters of any kind. */
export const NewPassword = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      whyUnreadable(text) ??
      ((characters(text) >= length.min && characters(text) <= length.max) ||
        `must have ${length.min} to ${length.max} characters`)
  ).annotate({ toJsonSchema: () => ({ minLength: length.min, maxLength: length.max }) })
)

/** The password is one of the most common passwords. `field` is its name in the request. */
export class CommonPassword extends Schema.TaggedError<CommonPassword>()("CommonPassword", { field: Schema.String }) {
  override get message() {
    return "This password is too common: attackers try it first. Choose another one"
  }
}

/** All clients together have too many attempts in progress. Hashing is slow by design, so their number is limited. */
export class PasswordsBusy extends Schema.TaggedError<PasswordsBusy>()("PasswordsBusy", {}) {
  override get message() {
    return "Too many logins and signups are in progress; retry in a few seconds"
  }
}

/**
 * The operations of an attempt to log in, sign up or change a password. The number of concurrent operations is limited, and
 * waiting clients take turns.
 */
export interface PasswordWork {
  /** Returns a salted hash that contains its parameters. */
  readonly hash: (password: Redacted.Redacted) => Effect.Effect<Redacted.Redacted>
  /**
   * Returns true if the password matches the hash. If `hash` is null, returns false after the same work, so that the duration
   * does not reveal whether the account has a password.
   */
  readonly matches: (password: Redacted.Redacted, hash: Redacted.Redacted | null) => Effect.Effect<boolean>
}

export class Passwords extends Context.Service<
  Passwords,
  {
    /** Fails if the password is a common one; case is ignored. `field` is its name in the request, by default `password`. */
    readonly refuseCommon: (password: Redacted.Redacted, field?: string) => Effect.Effect<void, CommonPassword>
    /**
     * Runs an attempt of a client to log in, sign up or change a password. Fails at once with RateLimitExceeded if the client has too
     * many attempts in progress, and with PasswordsBusy if all clients together have too many.
     */
    readonly attempt: <A, E, R>(
      client: string,
      work: (passwords: PasswordWork) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | PasswordsBusy | RateLimitExceeded, R>
  }
>()("vatproof/domain/accounts/login/Passwords") {}

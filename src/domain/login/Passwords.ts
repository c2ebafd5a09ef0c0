/** Passwords, as slow to guess as the machine allows (rule 51). */
import { Context, type Effect, type Redacted, Schema } from "effect"
import { characters, whyUnreadable } from "#domain/kernel/PlainText.ts"
import type { RateLimitExceeded } from "#domain/callers/RateLimits.ts"

const length = { min: 8, max: 256 }

/** A password that somebody may choose: any characters at all, but enough of them, and none that could stand for another. */
export const NewPassword = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      whyUnreadable(text) ??
      ((characters(text) >= length.min && characters(text) <= length.max) ||
        `must have ${length.min} to ${length.max} characters`)
  ).annotate({ toJsonSchema: () => ({ minLength: length.min, maxLength: length.max }) })
)

/** The password, in this field of the request, is among those that are tried first. */
export class CommonPassword extends Schema.TaggedError<CommonPassword>()("CommonPassword", { field: Schema.String }) {
  override get message() {
    return "This password is one of the most common ones, which are tried first. Choose another one"
  }
}

export class CommonPasswords extends Context.Service<
  CommonPasswords,
  {
    /** Fails with CommonPassword; case does not matter. `field` is `password` if it has no other name in the request. */
    readonly refuse: (password: Redacted.Redacted, field?: string) => Effect.Effect<void, CommonPassword>
  }
>()("vatproof/domain/login/CommonPasswords") {}

/** Hashing takes memory and time on purpose, so the attempts under way are bounded. */
export class PasswordsBusy extends Schema.TaggedError<PasswordsBusy>()("PasswordsBusy", {}) {
  override get message() {
    return "Too many people are logging in right now"
  }
}

/** What an attempt may ask for. All clients come in turn. */
export interface PasswordWork {
  /** A salted hash that carries its own parameters. */
  readonly hash: (password: Redacted.Redacted) => Effect.Effect<Redacted.Redacted>
  /** Whether it is the password of that hash. Without a hash the answer is no, after the same work as with one. */
  readonly matches: (password: Redacted.Redacted, hash: Redacted.Redacted | null) => Effect.Effect<boolean>
}

export class Passwords extends Context.Service<
  Passwords,
  {
    /**
     * Runs an attempt of a client to log in, to sign up or to change a password. A client that has too many under way gets
     * RateLimitExceeded, before the attempt costs anything; PasswordsBusy is for all clients together.
     */
    readonly attempt: <A, E, R>(
      client: string,
      work: (passwords: PasswordWork) => Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | PasswordsBusy | RateLimitExceeded, R>
  }
>()("vatproof/domain/login/Passwords") {}

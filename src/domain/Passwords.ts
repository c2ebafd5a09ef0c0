/** Passwords, as slow to guess as the machine allows (DECISIONS 34). */
import { Context, type Effect, type Redacted, Schema } from "effect"
import { characters, whyUnreadable } from "#domain/PlainText.ts"

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

/** Hashing takes memory and time on purpose, so only so many may wait for it, and fewer of one client. */
export class PasswordsBusy extends Schema.TaggedError<PasswordsBusy>()("PasswordsBusy", {}) {
  override get message() {
    return "Too many people are logging in right now"
  }
}

export class Passwords extends Context.Service<
  Passwords,
  {
    /** A salted hash that carries its own parameters. `client` names who wants it: all clients come in turn. */
    readonly hash: (client: string, password: Redacted.Redacted) => Effect.Effect<Redacted.Redacted, PasswordsBusy>
    /** Whether it is the password of that hash. Without a hash the answer is no, after the same work as with one. */
    readonly matches: (
      client: string,
      password: Redacted.Redacted,
      hash: Redacted.Redacted | null
    ) => Effect.Effect<boolean, PasswordsBusy>
  }
>()("vatproof/domain/Passwords") {}

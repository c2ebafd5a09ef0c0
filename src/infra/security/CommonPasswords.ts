/** The list of leaked passwords by frequency from the package @zxcvbn-ts/language-common. */
import { Effect, Redacted } from "effect"
import { CommonPassword } from "#domain/accounts/login/Passwords.ts"

/** Loads 18,000 passwords of 8 characters or more. This takes 50 ms, so it happens with the first new password, not at start. */
const load = Effect.map(
  Effect.promise(() => import("@zxcvbn-ts/language-common")),
  ({ dictionary }) => new Set(dictionary["passwords-common"])
)

/** Creates a function that fails with CommonPassword for a common password. */
export const make = Effect.map(Effect.cached(load), (list) =>
  Effect.fnUntraced(function* (password: Redacted.Redacted, field = "password") {
    const passwords = yield* list
    if (passwords.has(Redacted.value(password).toLowerCase())) return yield* new CommonPassword({ field })
  })
)

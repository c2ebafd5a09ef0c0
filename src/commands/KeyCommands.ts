/** `vatproof key …`: revokes API keys. */
import { Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AccountDirectory } from "#events/accounts/AccountDirectory.ts"
import { RevokeApiKey } from "#domain/accounts/keys/RevokeApiKey.ts"
import { asOperator, by, iso, json, operate, periodOf, print, reason } from "#app/commands/Operation.ts"
import { moment } from "#app/commands/Table.ts"

/**
 * The text that the operator entered identifies no API key. This includes a key's prefix without an account, because several keys can
 * have the same prefix.
 */
class KeyNotFound extends Schema.TaggedError<KeyNotFound>()("KeyNotFound", { message: Schema.String }) {}

/**
 * Returns the API key with this key_id. If the operator named an account, searches only its keys, and also accepts the prefix of a key.
 */
const findKey = Effect.fnUntraced(function* (keyText: string, account: Option.Option<string>) {
  const directory = yield* AccountDirectory
  const period = yield* periodOf(Option.none())
  if (Option.isSome(account)) {
    const owner = yield* directory.find(account.value)
    const keys = yield* directory.keysOf(owner.accountId, period)
    const key = keys.find(({ keyId, prefix }) => keyId === keyText || prefix === keyText)
    if (key === undefined) return yield* new KeyNotFound({ message: `The account ${account.value} has no API key "${keyText}"` })
    return key
  }
  if (keyText.startsWith("svc_live_")) {
    const message =
      "The first 12 characters identify a key only within its account: add --account <email or user_id>, or use the key_id"
    return yield* new KeyNotFound({ message })
  }
  const [key] = yield* directory.keyById(keyText, period)
  if (key === undefined) return yield* new KeyNotFound({ message: `There is no API key with the key_id "${keyText}"` })
  return key
})

const revokeCommand = Command.make(
  "revoke",
  {
    key: Argument.String("key").pipe(
      Argument.withDescription("The key_id, or with --account the first 12 characters of the key")
    ),
    account: Flag.String("account").pipe(Flag.optional, Flag.withDescription("Email address or user_id of the key's account")),
    reason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const { revoke } = yield* RevokeApiKey
      const before = yield* findKey(flags.key, flags.account)
      const changed = yield* revoke(before.accountId, before.prefix, "operator")
      const after = yield* findKey(before.keyId, Option.some(before.accountId))
      const key = `The API key ${after.prefix} of ${after.email ?? after.accountId}`
      const words = changed
        ? `${key} is revoked: every replica rejects it from now on.`
        : `${key} was revoked already, on ${moment(after.revokedAt)} (UTC).`
      const data = {
        key_id: after.keyId,
        prefix: after.prefix,
        user_id: after.accountId,
        revoked_at: iso(after.revokedAt),
        changed
      }
      yield* print(flags.json, data, words)
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription("Revoke an API key; irreversible"),
  Command.withExamples([
    {
      command: 'vatproof key revoke svc_live_a7K --account ada@example.com --reason "published by mistake"',
      description: "By the first characters of the key"
    },
    {
      command: 'vatproof key revoke 01a1fbdf-9945-75d0-accb-110e51370c57 --reason "abuse" --by carol',
      description: "By the key_id that account show prints"
    }
  ])
)

export const keyCommands = Command.make("key").pipe(Command.withSubcommands([revokeCommand]))

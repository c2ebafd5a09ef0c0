/** Creates accounts over HTTP for tests of commands, and decodes the JSON output of commands. */
import { Effect, Schema } from "effect"
import { commandJson } from "#test/support/CommandLine.ts"
import * as RunningService from "#test/support/RunningService.ts"

const Key = Schema.Struct({ key_id: Schema.String, prefix: Schema.String, used: Schema.Int, limit: Schema.Int })

export const Account = Schema.Struct({
  user_id: Schema.String,
  email: Schema.NullOr(Schema.String),
  agent_id: Schema.NullOr(Schema.String),
  plan: Schema.String,
  per_month: Schema.Int,
  own_per_month: Schema.NullOr(Schema.Int),
  active_keys: Schema.Int
})
const AccountWithKeys = Schema.Struct({ ...Account.fields, keys: Schema.Array(Key) })

export const Usage = Schema.Struct({
  keys: Schema.Array(Key),
  anonymous: Schema.optionalKey(Schema.Struct({ addresses: Schema.Int, used: Schema.Int }))
})

/** Settings with the default limits of plans, and without limits on the number of accounts and calls of a test. */
export const settings = { ...RunningService.ownLimits, PLAN_FREE_PER_MINUTE: "1000", REGISTRATIONS_PER_DAY: "1000" }

/** Flags that commands require if they reduce a customer's rights. */
export const why = ["--reason", "a test"] as const

const decodeKey = Schema.decodeUnknownEffect(Schema.Struct({ api_key: Schema.String }))

/** Registers an account and returns its key. */
export const register = Effect.fnUntraced(function* (email: string) {
  const { post } = yield* RunningService.RunningService
  const { body } = yield* post("/v1/register", { email })
  return (yield* decodeKey(body)).api_key
})

export const showAccount = (who: string) => commandJson(AccountWithKeys, "account", "show", who)

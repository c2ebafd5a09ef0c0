/** `vatproof usage …`: shows the usage of API keys, and verifies that all meters match the events. */
import { Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { AccountDirectory, type KeyRecord } from "#events/accounts/AccountDirectory.ts"
import { type Difference, UsageAudit } from "#events/callers/UsageAudit.ts"
import * as Database from "#infra/postgres/Database.ts"
import * as SchemaComparison from "#infra/postgres/SchemaComparison.ts"
import { iso, json, limit, month, operate, periodOf, print } from "#app/commands/Operation.ts"
import { table } from "#app/commands/Table.ts"

const percent = ({ perMonth, used }: KeyRecord) => (perMonth === 0 ? "-" : `${Math.floor((used * 100) / perMonth)} %`)

const show = Command.make(
  "show",
  {
    account: Argument.String("account").pipe(
      Argument.optional,
      Argument.withDescription("Email address or user_id: all keys of one account. Default: the busiest keys of all accounts")
    ),
    month,
    limit,
    json
  },
  Effect.fnUntraced(function* (flags) {
    const directory = yield* AccountDirectory
    const audit = yield* UsageAudit
    const period = yield* periodOf(flags.month)
    const keys = Option.isSome(flags.account)
      ? yield* directory.keysOf((yield* directory.find(flags.account.value)).accountId, period)
      : yield* directory.busiest(period, flags.limit)
    const anonymous = Option.isSome(flags.account) ? null : yield* audit.anonymous
    const words = table<KeyRecord>(
      [
        { heading: "KEY", cell: ({ prefix }) => prefix },
        { heading: "ACCOUNT", cell: ({ accountId, email }) => email ?? accountId },
        { heading: "PLAN", cell: ({ plan }) => plan },
        { heading: `USED ${period.name}`, cell: ({ used }) => used },
        { heading: "LIMIT", cell: ({ perMonth }) => perMonth },
        { heading: "", cell: percent }
      ],
      keys
    )
    const others =
      anonymous === null
        ? ""
        : `\n\nWithout a key, for all time: ${anonymous.used} validations from ${anonymous.addresses} client addresses.`
    const data = {
      period: { name: period.name, start: iso(period.start), end: iso(period.end) },
      keys: keys.map((key) => ({
        key_id: key.keyId,
        prefix: key.prefix,
        user_id: key.accountId,
        email: key.email,
        plan: key.plan,
        used: key.used,
        limit: key.perMonth
      })),
      ...(anonymous === null ? {} : { anonymous })
    }
    yield* print(flags.json, data, (keys.length === 0 ? `No key was used in ${period.name}.` : words) + others)
  }, operate)
).pipe(
  Command.withDescription("Show the usage of a month"),
  Command.withExamples([
    { command: "vatproof usage show", description: "The busiest keys this month" },
    { command: "vatproof usage show ada@example.com --month 2026-10", description: "One account, an earlier month" }
  ])
)

/** At least one meter differs from the events: validations were counted wrongly or not at all. */
class UsageDiffers extends Schema.TaggedError<UsageDiffers>()("UsageDiffers", { message: Schema.String }) {}

const check = Command.make(
  "check",
  { json },
  Effect.fnUntraced(function* (flags) {
    const audit = yield* UsageAudit
    const { differences, differing, meters, positions, units, used } = yield* audit.check
    // A trigger could make calls free in the events themselves, before they are signed.
    const schema = yield* Effect.flatten(SchemaComparison.load).pipe(
      Effect.provide(Database.layerExisting),
      Effect.catchTags({ SqlError: Effect.die, SchemaError: Effect.die })
    )
    const data = {
      ok: differing + schema.length === 0,
      events: positions,
      meters,
      used,
      units,
      differing,
      differences: differences.map((one) => ({ ...one })),
      schema: schema.map((one) => ({ ...one }))
    }
    if (differing === 0 && schema.length > 0) {
      yield* print(flags.json, data, schema.map(({ message, object }) => `${object}: ${message}`).join("\n"))
      const message = `The schema differs from this version's, so the units of the events prove nothing: run "vatproof audit verify"`
      return yield* new UsageDiffers({ message })
    }
    if (differing === 0) {
      const words = `OK: all ${meters} meters match the log. ${used} units in ${positions} events.`
      return yield* print(flags.json, data, words)
    }
    const words = table<Difference>(
      [
        { heading: "METER", cell: ({ meter }) => meter },
        { heading: "USED", cell: ({ used }) => used },
        { heading: "UNITS OF EVENTS", cell: ({ units }) => units },
        { heading: "TOO MUCH", cell: ({ units, used }) => used - units },
        { heading: "EVENTS", cell: ({ events }) => events },
        { heading: "POSITIONS", cell: ({ first, last }) => (first === null ? null : `${first} to ${last}`) }
      ],
      differences
    )
    yield* print(flags.json, data, words)
    const message = `${differing} of ${meters} meters differ from the ${positions} events of the log`
    return yield* new UsageDiffers({ message })
  }, operate)
).pipe(
  Command.withDescription(
    "Prove that metering is exact: for every key and month, and for every anonymous address, the counted usage is the sum of the units " +
      "of the events in the log. Prints each meter that differs, and ends with exit code 1 if there is one. Reads the whole log; the service may run meanwhile"
  ),
  Command.withShortDescription("Prove that metering is exact"),
  Command.withExamples([
    { command: "vatproof usage check", description: "Print one line if all meters match" },
    { command: "vatproof usage check --json", description: "Print JSON for a monitor: ok is true or false" }
  ])
)

export const usageCommands = Command.make("usage").pipe(Command.withSubcommands([show, check]))

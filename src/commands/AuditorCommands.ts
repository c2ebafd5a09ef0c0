/** `vatproof auditor …`: manages the auditors who read the log over HTTP. */
import { DateTime, Effect, Option, Redacted } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AccountDirectory } from "#events/accounts/AccountDirectory.ts"
import { type AuditorEntry, Auditors } from "#domain/audit/Auditors.ts"
import { asOperator, by, iso, json, operate, optionalReason, print } from "#app/commands/Operation.ts"
import { moment, table } from "#app/commands/Table.ts"

/** Maximum lifetime of an auditor's token in days: three years. A token is meant for a single audit. */
const maxDays = 1_096

const add = Command.make(
  "add",
  {
    name: Argument.String("name").pipe(
      Argument.filter(
        (text) => text.trim() !== "" && text.length <= 200,
        () => "Expected 1 to 200 characters"
      ),
      Argument.withDescription("Recipient of the token. The log keeps it forever: name an office, not a person")
    ),
    account: Flag.String("account").pipe(
      Flag.optional,
      Flag.withDescription("Email address or user_id of the only account that the auditor may read. Default: all")
    ),
    days: Flag.Int("days").pipe(
      Flag.withDefault(30),
      Flag.filter(
        (days) => days >= 1 && days <= maxDays,
        (days) => `Expected 1 to ${maxDays}, got ${days}`
      ),
      Flag.withDescription(`Lifetime of the token in days, 1 to ${maxDays}`)
    ),
    reason: optionalReason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const auditors = yield* Auditors
      const directory = yield* AccountDirectory
      const account = Option.isNone(flags.account) ? null : yield* directory.find(flags.account.value)
      const accountId = account?.accountId ?? null
      const expiresAt = DateTime.add(yield* DateTime.now, { days: flags.days })
      const { auditorId, token } = yield* auditors.add({ name: flags.name.trim(), accountId, expiresAt })
      const secret = Redacted.value(token)
      const words = `${secret}\n\nThis token is shown only once. It can read ${account === null ? "the whole log" : `the events of ${account.email ?? accountId}`} until ${moment(expiresAt)} (UTC), and change nothing.
Its auditor_id is ${auditorId}: "vatproof auditor revoke ${auditorId}" ends it at once.`
      yield* print(flags.json, { auditor_id: auditorId, token: secret, user_id: accountId, expires_at: iso(expiresAt) }, words)
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription("Admit an auditor: create a token to read the log, or one account's events, over HTTP"),
  Command.withShortDescription("Admit an auditor"),
  Command.withExamples([
    { command: 'vatproof auditor add "Finanzamt Musterstadt" --days 14', description: "The whole log, for two weeks" },
    { command: "vatproof auditor add Ada --account ada@example.com", description: "One account" }
  ])
)

const stateOf = ({ expiresAt, revokedAt }: AuditorEntry, now: DateTime.Utc) =>
  revokedAt !== null ? "revoked" : DateTime.isLessThanOrEqualTo(expiresAt, now) ? "expired" : "active"

const list = Command.make(
  "list",
  { json },
  Effect.fnUntraced(function* (flags) {
    const auditors = yield* Auditors
    const now = yield* DateTime.now
    const entries = yield* auditors.list
    const data = entries.map((entry) => ({
      auditor_id: entry.auditorId,
      name: entry.name,
      user_id: entry.accountId,
      state: stateOf(entry, now),
      added_at: iso(entry.addedAt),
      expires_at: iso(entry.expiresAt),
      revoked_at: iso(entry.revokedAt)
    }))
    const words = table<AuditorEntry>(
      [
        { heading: "AUDITOR_ID", cell: ({ auditorId }) => auditorId },
        { heading: "NAME", cell: ({ name }) => name },
        { heading: "ACCOUNT", cell: ({ accountId }) => accountId ?? "all" },
        { heading: "STATE", cell: (entry) => stateOf(entry, now) },
        { heading: "ADDED (UTC)", cell: ({ addedAt }) => moment(addedAt) },
        { heading: "EXPIRES (UTC)", cell: ({ expiresAt }) => moment(expiresAt) }
      ],
      entries
    )
    yield* print(flags.json, { auditors: data }, entries.length === 0 ? "There are no auditors." : words)
  }, operate)
).pipe(Command.withDescription("List the auditors, newest first"))

const revoke = Command.make(
  "revoke",
  {
    auditor: Argument.String("auditor_id").pipe(Argument.withDescription("The auditor_id that `vatproof auditor list` prints")),
    reason: optionalReason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const auditors = yield* Auditors
      yield* auditors.revoke(flags.auditor)
      yield* print(flags.json, { auditor_id: flags.auditor, revoked: true }, "Every replica now refuses the token.")
    },
    operate,
    asOperator
  )
).pipe(Command.withDescription("Revoke an auditor's token; irreversible"))

export const auditorCommands = Command.make("auditor").pipe(Command.withSubcommands([add, list, revoke]))

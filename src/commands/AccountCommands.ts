/** `vatproof account …`: lists and manages accounts and their plans. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { AccountDirectory, type AccountRecord, idForm, type KeyRecord } from "#events/accounts/AccountDirectory.ts"
import { ChangePlan } from "#domain/accounts/ChangePlan.ts"
import { CloseAccount } from "#domain/accounts/CloseAccount.ts"
import { AccountsShown } from "#domain/accounts/AccountEvents.ts"
import { logStream } from "#domain/log/LogReadEvents.ts"
import { limitsOf, PlanName, Plans } from "#domain/callers/PlanLimits.ts"
import { ClosedAccountMails } from "#events/accounts/ClosedAccountMails.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import { asOperator, by, iso, json, limit, operate, optionalReason, periodOf, print, reason } from "#app/commands/Operation.ts"
import { moment, record, table } from "#app/commands/Table.ts"

const who = Argument.String("account").pipe(Argument.withDescription("Email address, user_id or agent id of the account"))

const accountJson = (account: AccountRecord) => ({
  user_id: account.accountId,
  email: account.email,
  agent_id: account.agentId,
  plan: account.plan,
  per_month: account.perMonth,
  own_per_month: account.ownPerMonth,
  verified_at: iso(account.verifiedAt),
  created_at: iso(account.createdAt),
  closed_at: iso(account.closedAt),
  active_keys: account.activeKeys
})

const keyJson = (key: KeyRecord) => ({
  key_id: key.keyId,
  prefix: key.prefix,
  name: key.label,
  created_at: iso(key.issuedAt),
  revoked_at: iso(key.revokedAt),
  used: key.used,
  limit: key.perMonth
})

/** Records that the operator reads contact data. */
const recordShown = (accountId: string | null, accounts: number) =>
  EventStore.use(({ appendFact }) => appendFact(logStream, AccountsShown.make({ account_id: accountId, accounts })))

const list = Command.make(
  "list",
  {
    plan: Flag.Literals("plan", PlanName.literals).pipe(Flag.optional, Flag.withDescription("Only accounts with this plan")),
    before: Flag.String("before").pipe(
      Flag.filter(
        (userId) => idForm.test(userId),
        () => "Expected a user_id"
      ),
      Flag.optional,
      Flag.withDescription("List the accounts that come after this user_id, to continue a list")
    ),
    limit,
    reason: optionalReason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const directory = yield* AccountDirectory
      const query = { plan: Option.getOrNull(flags.plan), before: Option.getOrNull(flags.before), limit: flags.limit }
      const accounts = yield* directory.list(query)
      const next = accounts.length < flags.limit ? null : (accounts.at(-1)?.accountId ?? null)
      const words = table<AccountRecord>(
        [
          { heading: "USER_ID", cell: ({ accountId }) => accountId },
          {
            heading: "EMAIL OR AGENT",
            cell: ({ agentId, closedAt, email }) => email ?? agentId ?? (closedAt === null ? null : "(closed)")
          },
          { heading: "PLAN", cell: ({ plan }) => plan },
          { heading: "PER MONTH", cell: ({ perMonth }) => perMonth },
          { heading: "KEYS", cell: ({ activeKeys }) => activeKeys },
          { heading: "VERIFIED (UTC)", cell: ({ verifiedAt }) => moment(verifiedAt) },
          { heading: "CREATED (UTC)", cell: ({ createdAt }) => moment(createdAt) }
        ],
        accounts
      )
      const more = next === null ? "" : `\n\nThere may be more accounts: add --before ${next}`
      yield* recordShown(null, accounts.length)
      yield* print(flags.json, { accounts: accounts.map(accountJson), next_before: next }, words + more)
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription("List the accounts, newest first"),
  Command.withExamples([
    { command: "vatproof account list", description: "The newest 50 accounts" },
    { command: "vatproof account list --plan business --json", description: "Accounts on one plan, for a script" }
  ])
)

const show = Command.make(
  "show",
  { account: who, reason: optionalReason, by, json },
  Effect.fnUntraced(
    function* (flags) {
      const directory = yield* AccountDirectory
      const period = yield* periodOf(Option.none())
      const account = yield* directory.find(flags.account)
      const keys = yield* directory.keysOf(account.accountId, period)
      const facts = record([
        ["user_id", account.accountId],
        ["email", account.email],
        ["agent_id", account.agentId],
        ["plan", account.plan],
        ["per month", `${account.perMonth}${account.ownPerMonth === null ? "" : " (set for this account)"}`],
        ["verified (UTC)", moment(account.verifiedAt)],
        ["created (UTC)", moment(account.createdAt)],
        ["closed (UTC)", moment(account.closedAt)]
      ])
      const keyTable = table<KeyRecord>(
        [
          { heading: "KEY", cell: ({ prefix }) => prefix },
          { heading: "KEY_ID", cell: ({ keyId }) => keyId },
          { heading: "NAME", cell: ({ label }) => label },
          { heading: `USED ${period.name}`, cell: ({ used }) => used },
          { heading: "CREATED (UTC)", cell: ({ issuedAt }) => moment(issuedAt) },
          { heading: "REVOKED (UTC)", cell: ({ revokedAt }) => moment(revokedAt) }
        ],
        keys
      )
      yield* recordShown(account.accountId, 1)
      const data = { ...accountJson(account), period: period.name, keys: keys.map(keyJson) }
      yield* print(flags.json, data, `${facts}\n\n${keys.length === 0 ? "The account has no API keys." : keyTable}`)
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription("Show an account, its API keys and their usage in the current month"),
  Command.withExamples([
    { command: "vatproof account show ada@example.com", description: "By email address" },
    { command: "vatproof account show invoice-agent/2.1", description: "By agent id, if only one account has it" },
    { command: "vatproof account show 01a1fbdf-96b5-7512-bea0-73d5194bd392 --json", description: "By user_id, for a script" }
  ])
)

const named = (account: AccountRecord) => account.email ?? account.agentId ?? account.accountId

const plan = Command.make(
  "plan",
  {
    account: who,
    plan: Argument.Literals("plan", PlanName.literals).pipe(Argument.withDescription("The new plan")),
    perMonth: Flag.String("per-month").pipe(
      // Flag.Int would parse `250.000` as 250. In German, `250.000` means 250 thousand. This filter therefore accepts only digits.
      Flag.filter(
        (text) => /^[1-9]\d*$/u.test(text) && Number.isSafeInteger(Number(text)),
        () => "Expected a whole number from 1, in digits"
      ),
      Flag.map(Number),
      Flag.optional,
      Flag.withDescription("Validations per month and key for this account. Default: the limit of the plan")
    ),
    reason,
    by,
    json
  },
  Effect.fnUntraced(
    function* (flags) {
      const directory = yield* AccountDirectory
      const changePlan = yield* ChangePlan
      const plans = yield* Plans
      const { accountId } = yield* directory.find(flags.account)
      const terms = { plan: flags.plan, perMonth: Option.getOrNull(flags.perMonth) }
      const old = yield* changePlan.change(accountId, terms)
      const after = yield* directory.find(accountId)
      const changed = old.plan !== terms.plan || old.perMonth !== terms.perMonth
      const now = `${named(after)} is on ${after.plan} with ${after.perMonth} validations per month and key`
      const words = changed
        ? `${now} from now on. Before: ${old.plan} with ${limitsOf(plans, old.plan, old.perMonth).perMonth}.`
        : `${now} already: nothing changed.`
      yield* print(
        flags.json,
        { ...accountJson(after), changed, plan_before: old.plan, own_per_month_before: old.perMonth },
        words
      )
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription(
    "Change the plan of an account, effective immediately. The usage of the current month counts towards the new limit"
  ),
  Command.withShortDescription("Change the plan of an account"),
  Command.withExamples([
    {
      command: 'vatproof account plan ada@example.com business --reason "order 4711"',
      description: "Upgrade, with the plan's limits"
    },
    {
      command: 'vatproof account plan ada@example.com enterprise --per-month 250000 --reason "contract 12"',
      description: "A limit agreed with the customer"
    },
    {
      command: 'vatproof account plan ada@example.com free --reason "cancelled" --by carol',
      description: "Back to the free plan and its limits"
    }
  ])
)

const close = Command.make(
  "close",
  { account: who, reason, by, json },
  Effect.fnUntraced(
    function* (flags) {
      const directory = yield* AccountDirectory
      const closing = yield* CloseAccount
      const { accountId, closedAt } = yield* directory.find(flags.account)
      const changed = closedAt === null
      const revoked = changed ? yield* closing.close(accountId) : 0
      yield* (yield* ClosedAccountMails).remove
      const words = changed
        ? `The account ${accountId} is closed: ${revoked} API keys are revoked, its contact data is erased. Its receipts are kept until their retention period ends.`
        : `The account ${accountId} was already closed on ${moment(closedAt)} (UTC).`
      const { closedAt: at } = yield* directory.find(accountId)
      yield* print(flags.json, { user_id: accountId, closed_at: iso(at), revoked_keys: revoked, changed }, words)
    },
    operate,
    asOperator
  )
).pipe(
  Command.withDescription(
    "Close an account irreversibly: revoke its keys, end its logins, erase its email address, agent id, password, labels and mails. Auditors can still read its receipts"
  ),
  Command.withShortDescription("Close an account irreversibly"),
  Command.withExamples([
    { command: 'vatproof account close ada@example.com --reason "cancelled" --by carol', description: "By email address" }
  ])
)

export const accountCommands = Command.make("account").pipe(Command.withSubcommands([list, show, plan, close]))

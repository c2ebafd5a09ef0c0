/** Reads accounts and API keys with contact data and the usage of a month, for the operator's commands. */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { emailKey } from "#domain/accounts/email/EmailAddress.ts"
import { limitsOf, PlanName, Plans } from "#domain/callers/PlanLimits.ts"
import { type BillingPeriod, keyMeter } from "#domain/callers/BillingPeriod.ts"
import { keyPlaceholder } from "#events/callers/PgIdentity.ts"
import { logId } from "#events/log/store/AppendCommand.ts"
import { Int8 } from "#events/log/database/Rows.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"

const retryFor = "5 seconds"

/** Maximum number of accounts that the error of an ambiguous agent id names. */
const maxNamesakes = 5

/** Maximum number of keys that are read of one account. An account can issue 50 keys a month. */
const maxKeys = 10_000

/** Ids of accounts and keys are UUIDs; other text is not an id. */
export const idForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/iu

const AccountRow = Schema.Struct({
  accountId: Schema.String,
  email: Schema.NullOr(Schema.String),
  agentId: Schema.NullOr(Schema.String),
  plan: PlanName,
  /** The limit that the operator set for this account. */
  ownPerMonth: Schema.NullOr(Int8),
  verifiedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  createdAt: Schema.DateTimeUtcFromDate,
  closedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  activeKeys: Int8
})

const KeyRow = Schema.Struct({
  keyId: Schema.String,
  prefix: Schema.String,
  accountId: Schema.String,
  email: Schema.NullOr(Schema.String),
  /** The owner's name for the key, "" without a label. */
  label: Schema.String,
  plan: PlanName,
  ownPerMonth: Schema.NullOr(Int8),
  issuedAt: Schema.DateTimeUtcFromDate,
  revokedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  /** The validations of the requested month. */
  used: Int8
})

/** `perMonth` is the limit that applies: `ownPerMonth`, otherwise the limit of the plan. */
export type AccountRecord = typeof AccountRow.Type & { readonly perMonth: number }
export type KeyRecord = typeof KeyRow.Type & { readonly perMonth: number }

/** Selects at most `limit` accounts created before the account `before`, newest first. */
const AccountQuery = Schema.Struct({
  plan: Schema.NullOr(PlanName),
  before: Schema.NullOr(Schema.String),
  limit: Schema.Int
})

export class AccountNotFound extends Schema.TaggedError<AccountNotFound>()("AccountNotFound", { term: Schema.String }) {
  override get message() {
    return `There is no account with the email address, user_id or agent id "${this.term}"`
  }
}

/** Several accounts have this agent id, which agents choose themselves. `accountIds` lists the newest of these accounts. */
export class AccountNotUnique extends Schema.TaggedError<AccountNotUnique>()("AccountNotUnique", {
  term: Schema.String,
  accountIds: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Several accounts have the agent id "${this.term}": use a user_id, for example ${this.accountIds.join(", ")}`
  }
}

const accountColumns = `a.account_id AS "accountId", c.email, c.agent_id AS "agentId", a.plan, a.per_month AS "ownPerMonth",
  a.verified_at AS "verifiedAt", a.created_at AS "createdAt", a.closed_at AS "closedAt",
  (SELECT count(*) FROM vatproof.api_keys k WHERE k.account_id = a.account_id AND k.revoked_at IS NULL) AS "activeKeys"
  FROM vatproof.accounts a LEFT JOIN vatproof.contacts c ON c.account_id = a.account_id`

/** Creates a function that finds an account by user_id, email address or agent id. */
const makeFind = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const findAccount = SqlSchema.findAll({
    Request: Schema.Struct({ accountId: Schema.NullOr(Schema.String), email: Schema.NullOr(Schema.String) }),
    Result: AccountRow,
    execute: ({ accountId, email }) => sql`SELECT ${sql.literal(accountColumns)}
      WHERE a.account_id = ${accountId}::uuid OR c.email_key = ${email}`
  })

  const findByAgent = SqlSchema.findAll({
    Request: Schema.String,
    Result: AccountRow,
    // The account ids are in an array, so that the planner reads the index of agent ids first. With a join it might read all
    // accounts.
    execute: (agentId) => sql`SELECT ${sql.literal(accountColumns)}
      WHERE a.account_id = ANY (ARRAY(SELECT account_id FROM vatproof.contacts WHERE agent_id = ${agentId}
        ORDER BY account_id DESC LIMIT ${maxNamesakes})) ORDER BY a.account_id DESC`
  })

  return Effect.fnUntraced(function* (term: string) {
    const wanted = idForm.test(term) ? { accountId: term, email: null } : { accountId: null, email: emailKey(term) }
    const [row] = yield* findAccount(wanted).pipe(QueryPolicy.withRetry(retryFor))
    if (row !== undefined) return row
    const [only, ...namesakes] = yield* findByAgent(term).pipe(QueryPolicy.withRetry(retryFor))
    if (only === undefined) return yield* new AccountNotFound({ term })
    if (namesakes.length === 0) return only
    const accountIds = [only, ...namesakes].map(({ accountId }) => accountId)
    return yield* new AccountNotUnique({ term, accountIds })
  })
})

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const plans = yield* Plans
  const withLimit = <Row extends Pick<KeyRecord, "ownPerMonth" | "plan">>(row: Row) => ({
    ...row,
    perMonth: limitsOf(plans, row.plan, row.ownPerMonth).perMonth
  })

  const findRow = yield* makeFind
  const findAccounts = SqlSchema.findAll({
    Request: AccountQuery,
    Result: AccountRow,
    // Account ids are UUIDv7, so newer accounts have greater ids.
    execute: ({ before, limit, plan }) => sql`SELECT ${sql.literal(accountColumns)}
      WHERE (${plan}::text IS NULL OR a.plan = ${plan}) AND (${before}::uuid IS NULL OR a.account_id < ${before}::uuid)
      ORDER BY a.account_id DESC LIMIT ${limit}`
  })

  const findKeys = yield* makeFindKeys
  const keys = (period: BillingPeriod, wanted: Omit<typeof KeyQuery.Type, "meter">) =>
    findKeys({ meter: keyMeter(keyPlaceholder, period), ...wanted }).pipe(
      Effect.map((rows) => rows.map(withLimit)),
      QueryPolicy.withRetry(retryFor)
    )

  return {
    /** Finds by user_id, by case-insensitive email address, or by an agent id that only one account has. */
    find: (term: string) => Effect.map(findRow(term), withLimit),
    list: (query: typeof AccountQuery.Type) =>
      findAccounts(query).pipe(
        Effect.map((rows) => rows.map(withLimit)),
        QueryPolicy.withRetry(retryFor)
      ),
    /** Returns the keys of an account, newest first. */
    keysOf: (accountId: string, period: BillingPeriod) => keys(period, { accountId, keyId: null, limit: maxKeys }),
    /** Returns a list with the key that has this id; an empty list for an unknown id. */
    keyById: (keyId: string, period: BillingPeriod) =>
      idForm.test(keyId) ? keys(period, { accountId: null, keyId, limit: 1 }) : Effect.succeed([]),
    /** Returns at most `limit` keys that were used in a month, the busiest first. */
    busiest: (period: BillingPeriod, limit: number) => keys(period, { accountId: null, keyId: null, limit })
  }
})

/**
 * Selects one key by `keyId`, or the keys of `accountId`, or (if both are null) the keys with usage. `meter` is the
 * name of a key's meter with `keyPlaceholder` in place of the key's id.
 */
const KeyQuery = Schema.Struct({
  meter: Schema.String,
  accountId: Schema.NullOr(Schema.String),
  keyId: Schema.NullOr(Schema.String),
  limit: Schema.Int
})

const makeFindKeys = Effect.map(SqlClient.SqlClient, (sql) =>
  SqlSchema.findAll({
    Request: KeyQuery,
    Result: KeyRow,
    execute: ({ accountId, keyId, limit, meter }) => {
      const columns = sql`k.key_id AS "keyId", k.prefix, k.account_id AS "accountId", c.email, coalesce(l.label, '') AS label, a.plan,
        a.per_month AS "ownPerMonth", k.issued_at AS "issuedAt", k.revoked_at AS "revokedAt", coalesce(m.used, 0) AS used
        FROM vatproof.api_keys k JOIN vatproof.accounts a ON a.account_id = k.account_id
        LEFT JOIN vatproof.contacts c ON c.account_id = a.account_id
        LEFT JOIN vatproof.api_key_labels l ON l.key_id = k.key_id
        LEFT JOIN vatproof.meters m ON m.log_id = ${logId} AND m.meter_id = replace(${meter}, ${keyPlaceholder}, k.key_id::text)`
      if (keyId !== null) return sql`SELECT ${columns} WHERE k.key_id = ${keyId} LIMIT ${limit}`
      return accountId === null
        ? sql`SELECT ${columns} WHERE m.used > 0 ORDER BY m.used DESC, k.key_id LIMIT ${limit}`
        : sql`SELECT ${columns} WHERE k.account_id = ${accountId} ORDER BY k.key_id DESC LIMIT ${limit}`
    }
  })
)

export class AccountDirectory extends Context.Service<AccountDirectory, Effect.Success<typeof make>>()(
  "vatproof/events/accounts/AccountDirectory"
) {
  static readonly layer = Layer.effect(AccountDirectory, make)
}

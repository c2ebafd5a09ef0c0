/**
 * Creates and changes accounts. Loads the newest state of an account, lets the use case decide, and appends the resulting events. The
 * append updates the tables of accounts and API keys. Contact data, which is not in events, is written in the same transaction.
 */
import { Array as Arr, DateTime, Effect, Layer, Redacted, Schema, Semaphore } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type AccountState, evolve, noAccount } from "#domain/accounts/Account.ts"
import { ApiKeyIssued } from "#domain/accounts/ApiKeyEvents.ts"
import { accountStream } from "#domain/accounts/AccountEvents.ts"
import {
  AccountStore,
  type InSameTransaction,
  type Contact,
  type Decision,
  EmailTaken,
  NoSuchAccount
} from "#domain/accounts/AccountStore.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import { emailKey } from "#domain/accounts/email/EmailAddress.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { type AppendCommand, VersionConflict } from "#events/log/store/AppendCommand.ts"
import { EventStore } from "#events/log/store/EventStore.ts"
import * as QueryPolicy from "#events/log/database/QueryPolicy.ts"
import type { StoredEvent } from "#events/log/store/StoredEvent.ts"

/**
 * Maximum number of concurrent changes per replica. Changes of the same account wait for each other, and waiting changes must not
 * occupy all connections.
 */
const maxChanges = 2
/** Timeout of a change with all its attempts. */
const changePatience = "10 seconds"
/** Maximum attempts of a change. An attempt fails if another writer appends to the stream meanwhile. */
const maxDecisions = 5
/** Events per page of an account's stream, and maximum number of pages. An account gets at most about 100 events a month. */
const pageSize = 1_000
const maxPages = 100

const nothing = () => Effect.void

const commandOf = (accountId: string, version: number, events: ReadonlyArray<DomainEvent>): ReadonlyArray<AppendCommand> =>
  Arr.isReadonlyArrayNonEmpty(events)
    ? [{ stream: accountStream(accountId), expectedVersion: version, events, charge: null }]
    : []

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const events = yield* EventStore
  const open = yield* makeOpen
  const findRegistration = yield* makeFindRegistration
  const semaphore = yield* Semaphore.make(maxChanges)

  /** Appends the commands and runs `inSameTransaction` in one transaction. `commands` may be empty. */
  const write = <E>(commands: ReadonlyArray<AppendCommand>, inSameTransaction: InSameTransaction<E>, at: DateTime.Utc) =>
    Arr.isReadonlyArrayNonEmpty(commands) ? events.appendWith(commands, inSameTransaction, at) : inSameTransaction(at)

  const create = Effect.fn("AccountStore.create")(<E = never>(
    accountId: string,
    { agentId, email, passwordHash }: Contact,
    facts: Arr.NonEmptyReadonlyArray<DomainEvent>,
    further: InSameTransaction<E> = nothing
  ) => {
    const inSameTransaction = Effect.fnUntraced(function* (at: DateTime.Utc) {
      yield* sql`INSERT INTO vatproof.contacts (account_id, email, email_key, password_hash, agent_id)
          VALUES (${accountId}, ${email}, ${email === null ? null : emailKey(email)},
            ${passwordHash === undefined ? null : Redacted.value(passwordHash)}, ${agentId})`
      yield* further(at)
    })
    return Effect.flatMap(DateTime.now, (now) => write(commandOf(accountId, 0, facts), inSameTransaction, now)).pipe(
      Effect.catchIf(isEmailTaken, () => Effect.fail(new EmailTaken({}))),
      Effect.catchIf(isSqlError, QueryPolicy.refused),
      // A version conflict is a defect: the stream is new.
      Effect.catchIf(isVersionConflict, Effect.die)
    )
  })

  const decideOnce = Effect.fnUntraced(function* <A, E, E2>(
    accountId: string,
    decide: (account: AccountState, now: DateTime.Utc) => Effect.Effect<Decision<A, E2>, E>
  ) {
    const { state, version } = yield* open(accountId)
    const now = yield* DateTime.now
    const { events: facts, inSameTransaction = nothing, value } = yield* decide(state, now)
    yield* write(commandOf(accountId, version, facts), inSameTransaction, now)
    return value
  }, sql.withTransaction)

  const inTurn = <A, E>(decided: Effect.Effect<A, E | SqlError | VersionConflict>) =>
    decided.pipe(
      Effect.catchIf(isSqlError, QueryPolicy.refused),
      semaphore.withPermit,
      Effect.retry({ while: isVersionConflict, times: maxDecisions - 1 }),
      Effect.timeoutOrElse({ duration: changePatience, orElse: () => Effect.fail(new StoreUnavailable({})) }),
      Effect.catchIf(isVersionConflict, (conflict) => Effect.fail(new StoreUnavailable({ cause: conflict })))
    )

  const change = Effect.fn("AccountStore.change")(
    <A, E, E2 = never>(
      accountId: string,
      decide: (account: AccountState, now: DateTime.Utc) => Effect.Effect<Decision<A, E2>, E>
    ) => inTurn(decideOnce(accountId, decide))
  )

  const changeBoth: AccountStore["Service"]["changeBoth"] = Effect.fn("AccountStore.changeBoth")((firstId, secondId, decide) =>
    Effect.gen(function* () {
      const inOrder = yield* Effect.forEach([firstId, secondId].toSorted(), open)
      const [first, second] = firstId < secondId ? inOrder : inOrder.toReversed()
      if (first === undefined || second === undefined)
        return yield* Effect.die("AccountStore.changeBoth did not open two accounts (a defect)")
      const now = yield* DateTime.now
      const [ofFirst, ofSecond] = yield* decide(first.state, second.state, now)
      const commands = [...commandOf(firstId, first.version, ofFirst), ...commandOf(secondId, second.version, ofSecond)]
      yield* write(commands, nothing, now)
    }).pipe(sql.withTransaction, inTurn)
  )

  const eraseContact = (accountId: string) =>
    sql`DELETE FROM vatproof.contacts WHERE account_id = ${accountId}`.pipe(
      Effect.asVoid,
      Effect.catchTag("SqlError", QueryPolicy.refused)
    )

  return AccountStore.of({ create, findRegistration, change, changeBoth, eraseContact })
})

/** Compares the class instead of the tag, because the errors of the caller's `decide` may have the same tag. */
const isVersionConflict = Schema.is(VersionConflict)
const isEmailTaken = (error: unknown): boolean =>
  isSqlError(error) && error.reason._tag === "UniqueViolation" && error.reason.constraint === "contacts_email_key_key"

const lockAccount = (sql: SqlClient.SqlClient) => {
  const find = SqlSchema.findOne({
    Request: Schema.String,
    Result: Schema.Struct({ found: Schema.Boolean }),
    execute: (accountId) => sql`SELECT vatproof.lock_account(${accountId}) AS found`
  })
  return Effect.fnUntraced(function* (accountId: string) {
    const { found } = yield* find(accountId).pipe(Effect.catchTag(["SchemaError", "NoSuchElementError"], Effect.die))
    if (!found) return yield* new NoSuchAccount({ accountId })
  })
}

/**
 * Locks the row of an account and returns the state of the account. The lock serializes changes. The expected version detects a
 * writer that does not take this lock.
 */
const makeOpen = Effect.gen(function* () {
  const lock = lockAccount(yield* SqlClient.SqlClient)
  const load = yield* makeLoad
  return Effect.fnUntraced(function* (accountId: string) {
    yield* lock(accountId)
    const loaded = yield* load(accountId)
    return loaded.state.closed ? yield* new NoSuchAccount({ accountId }) : loaded
  })
})

const makeFindRegistration = Effect.map(EventStore, (events) =>
  Effect.fnUntraced(function* (accountId: string) {
    const issued = (yield* events.readStream(accountStream(accountId), 0, 2)).find(({ type }) => type === ApiKeyIssued.type)
    if (issued === undefined) return null
    const { data, occurred_at: at } = yield* decodeFact(issued)
    return { keySha256: ApiKeyIssued.read({ type: issued.type, schemaVersion: issued.schema_version, data }).key_sha256, at }
  })
)

/** Returns the state of an account and the version of its stream. */
const makeLoad = Effect.gen(function* () {
  const events = yield* EventStore
  return Effect.fnUntraced(function* (accountId: string) {
    let state = noAccount(accountId)
    let version = 0
    for (let page = 0; page < maxPages; page += 1) {
      const stored = yield* events.readStream(accountStream(accountId), version, pageSize)
      for (const one of stored) {
        const { data, occurred_at } = yield* decodeFact(one)
        state = evolve(state, { type: one.type, schemaVersion: one.schema_version, data }, occurred_at)
        version = one.version
      }
      if (stored.length < pageSize) return { state, version }
    }
    return yield* Effect.die(`Account ${accountId} cannot be loaded, because it has more than ${maxPages * pageSize} events`)
  })
})

const Fact = Schema.Struct({ data: Schema.fromJsonString(Schema.Json), occurred_at: Schema.DateTimeUtcFromString })
const decodeFacts = Schema.decodeUnknownEffect(Fact)
const decodeFact = ({ data, occurred_at }: StoredEvent) =>
  decodeFacts({ data, occurred_at }).pipe(Effect.catchTag("SchemaError", Effect.die))

export const layer = Layer.effect(AccountStore, make)

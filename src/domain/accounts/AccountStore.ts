/** Stores accounts. One transaction stores the events, the projections that decisions read, and the erasable contact data. */
import { type Array as Arr, Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Another account has this email address. The message does not reveal whether that account is verified. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", { bySignup: Schema.optionalKey(Schema.Boolean) }) {
  override get message() {
    const hint = ". If its address is not confirmed yet, a new mail is sent, at most every 10 minutes and a few a day"
    return `An account with this email address exists already. Its owner can set a password: POST /v1/auth/password-reset${this.bySignup === true ? hint : ""}`
  }
}

/** There is no account with this id, or it is closed. */
export class NoSuchAccount extends Schema.TaggedError<NoSuchAccount>()("NoSuchAccount", { accountId: Schema.String }) {
  override get message() {
    return `There is no open account ${this.accountId}`
  }
}

/** Personal data of an account. It is never in an event, log line or span. Only accounts with a login have a password. */
export interface Contact {
  readonly email: string | null
  readonly agentId: string | null
  readonly passwordHash?: Redacted.Redacted
}

/** A write in the transaction that stores the events. It receives the time of the events. If it fails, nothing is stored. */
export type InSameTransaction<E> = (at: DateTime.Utc) => Effect.Effect<void, E | StoreUnavailable>

/**
 * The result of a decision: events to store (if any), an optional write in the same transaction, and the value for the caller.
 */
export interface Decision<A, E = never> {
  readonly events: ReadonlyArray<DomainEvent>
  readonly inSameTransaction?: InSameTransaction<E>
  readonly value: A
}

export class AccountStore extends Context.Service<
  AccountStore,
  {
    /** Creates an account with its first events. */
    readonly create: <E = never>(
      accountId: string,
      contact: Contact,
      events: Arr.NonEmptyReadonlyArray<DomainEvent>,
      inSameTransaction?: InSameTransaction<E>
    ) => Effect.Effect<void, E | EmailTaken | StoreUnavailable>
    /**
     * Returns the first API key of a registered account (SHA-256 in hex) and the time of its issue; null if no such account exists.
     */
    readonly findRegistration: (
      accountId: string
    ) => Effect.Effect<{ readonly keySha256: string; readonly at: DateTime.Utc } | null, StoreUnavailable>
    /**
     * Passes the newest state of an account and the time to `decide`, and stores the returned events with this time. Decisions
     * about one account run one after the other, over all replicas. `decide` runs inside the transaction, so it must not call the
     * network. Fails with NoSuchAccount for a closed account.
     */
    readonly change: <A, E, E2 = never>(
      accountId: string,
      decide: (account: AccountState, now: DateTime.Utc) => Effect.Effect<Decision<A, E2>, E>
    ) => Effect.Effect<A, E | E2 | NoSuchAccount | StoreUnavailable>
    /**
     * Passes the newest states of two accounts and the time to `decide`, which returns the events of each. All events are stored
     * in one transaction. Locks both accounts in the order of their ids, which prevents deadlocks.
     */
    readonly changeBoth: <E>(
      firstId: string,
      secondId: string,
      decide: (
        first: AccountState,
        second: AccountState,
        now: DateTime.Utc
      ) => Effect.Effect<readonly [ReadonlyArray<DomainEvent>, ReadonlyArray<DomainEvent>], E>
    ) => Effect.Effect<void, E | NoSuchAccount | StoreUnavailable>
    /**
     * Erases the contact data of an account, and with it the password, key labels, mails and mailed tokens. Afterwards the address
     * can sign up again. Joins the caller's transaction.
     */
    readonly eraseContact: (accountId: string) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/AccountStore") {}

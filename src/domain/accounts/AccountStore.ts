/** Stores accounts: their events, the projections for decisions, and erasable contact data, all in one transaction. */
import { type Array as Arr, Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Another account has this email address. The hint is the same whether that account is verified or not. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", { bySignup: Schema.optionalKey(Schema.Boolean) }) {
  override get message() {
    const hint = ". If its address is not confirmed yet, a new mail is sent, at most every 10 minutes and a few a day"
    return `An account with this email address exists already${this.bySignup === true ? hint : ""}`
  }
}

/** There is no account with this id, or it is closed. */
export class NoSuchAccount extends Schema.TaggedError<NoSuchAccount>()("NoSuchAccount", { accountId: Schema.String }) {
  override get message() {
    return `There is no open account ${this.accountId}`
  }
}

/** Personal data of an account: never in an event, log line or span. Only accounts with a login have a password. */
export interface Contact {
  readonly email: string | null
  readonly agentId: string | null
  readonly passwordHash?: Redacted.Redacted
}

/** Writes data outside of the events. Joins the transaction of the events and receives their time; a failure rolls them back. */
export type InSameTransaction<E> = (at: DateTime.Utc) => Effect.Effect<void, E | StoreUnavailable>

/** The result of a decision: events to store (if any), a write beside them, and the value for the caller. */
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
    /** The API key that an account began with (SHA-256 in hex), and when; null if no such account registered itself. */
    readonly findRegistration: (
      accountId: string
    ) => Effect.Effect<{ readonly keySha256: string; readonly at: DateTime.Utc } | null, StoreUnavailable>
    /**
     * Decides on the newest state of an account and stores the result with the time that `decide` receives. Decisions about one
     * account are serialised across all replicas. `decide` runs inside the transaction, so it makes no network call. Closed
     * accounts are rejected.
     */
    readonly change: <A, E, E2 = never>(
      accountId: string,
      decide: (account: AccountState, now: DateTime.Utc) => Effect.Effect<Decision<A, E2>, E>
    ) => Effect.Effect<A, E | E2 | NoSuchAccount | StoreUnavailable>
    /**
     * Same for two accounts: `decide` returns the events of the first and of the second, which are stored all or none. Locks both
     * accounts in the order of their ids.
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
     * Erases the contact data of an account with its password, key labels, mails and tokens. The address can sign up again. Joins
     * the caller's transaction.
     */
    readonly eraseContact: (accountId: string) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/AccountStore") {}

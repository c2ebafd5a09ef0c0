/** Keeps accounts: their events, the projections that decisions read, and the contact data that can be erased, all or nothing. */
import { type Array as Arr, Context, type DateTime, type Effect, type Redacted, Schema } from "effect"
import type { AccountState } from "#domain/accounts/Account.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

/** Another account has this email address. Whoever signs up may have lost the mail to confirm it, and is told the same whether or not. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", { bySignup: Schema.optionalKey(Schema.Boolean) }) {
  override get message() {
    const hint = ". If it waits to be confirmed, a new mail is sent, at most every 10 minutes and a few a day"
    return `An account with this email address exists already${this.bySignup === true ? hint : ""}`
  }
}

/** There is no account of this id, or it is closed. */
export class NoSuchAccount extends Schema.TaggedError<NoSuchAccount>()("NoSuchAccount", { accountId: Schema.String }) {
  override get message() {
    return `There is no open account ${this.accountId}`
  }
}

/** Personal data of an account: never in an event, a log line or a span. Only accounts that people log in to have a password. */
export interface Contact {
  readonly email: string | null
  readonly agentId: string | null
  readonly passwordHash?: Redacted.Redacted
}

/** Writes what is no fact. It joins the transaction of the facts, whose time it gets; its failure undoes them. */
export type InSameTransaction<E> = (at: DateTime.Utc) => Effect.Effect<void, E | StoreUnavailable>

/** What a decision wants stored: the facts, if any, and beside them what is no fact; and what the caller gets. */
export interface Decision<A, E = never> {
  readonly events: ReadonlyArray<DomainEvent>
  readonly inSameTransaction?: InSameTransaction<E>
  readonly value: A
}

export class AccountStore extends Context.Service<
  AccountStore,
  {
    /** Stores a new account with its first events. */
    readonly create: <E = never>(
      accountId: string,
      contact: Contact,
      events: Arr.NonEmptyReadonlyArray<DomainEvent>,
      inSameTransaction?: InSameTransaction<E>
    ) => Effect.Effect<void, E | EmailTaken | StoreUnavailable>
    /**
     * Decides about an account on its newest state and stores what was decided, as having happened at the time that `decide` gets.
     * Decisions about one account come one after the other, on whichever replica they are made. `decide` runs in the transaction, so it
     * calls nothing over the network. Nothing is decided about a closed account.
     */
    readonly change: <A, E, E2 = never>(
      accountId: string,
      decide: (account: AccountState, now: DateTime.Utc) => Effect.Effect<Decision<A, E2>, E>
    ) => Effect.Effect<A, E | E2 | NoSuchAccount | StoreUnavailable>
    /**
     * The same about two accounts: `decide` gives the events of the first and those of the second, and all of them are stored or none. Both
     * accounts are locked in the order of their ids.
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
     * Erases the contact data of an account with its password, the labels of its keys, and its mails with their tokens. Its address can sign up
     * again. Joins the transaction of its caller.
     */
    readonly eraseContact: (accountId: string) => Effect.Effect<void, StoreUnavailable>
  }
>()("vatproof/domain/accounts/AccountStore") {}

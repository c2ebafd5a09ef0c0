/** Keeps accounts: their events, the projections that decisions read, and the contact data that can be erased, all or nothing. */
import { type Array as Arr, Context, type Effect, Schema } from "effect"
import type { DomainEvent } from "#domain/DomainEvent.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** Another account has this email address. */
export class EmailTaken extends Schema.TaggedError<EmailTaken>()("EmailTaken", {}) {
  override get message() {
    return "An account with this email address exists already"
  }
}

/** Personal data of an account: never in an event, a log line or a span. */
export interface Contact {
  readonly email: string | null
  readonly agentId: string | null
}

export class AccountStore extends Context.Service<
  AccountStore,
  {
    /** Stores a new account with its first events. */
    readonly create: (
      accountId: string,
      contact: Contact,
      events: Arr.NonEmptyReadonlyArray<DomainEvent>
    ) => Effect.Effect<void, EmailTaken | StoreUnavailable>
  }
>()("vatproof/domain/AccountStore") {}

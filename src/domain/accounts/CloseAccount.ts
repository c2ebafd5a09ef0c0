/** Closes an account permanently: revokes its keys and erases its contact data. Events and receipts stay. */
import { Context, Effect, Layer } from "effect"
import { type AccountState, revokeKeys } from "#domain/accounts/Account.ts"
import { AccountClosed } from "#domain/accounts/AccountEvents.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

/** Returns the events that revoke the active keys and close the account. */
export const decide = (account: AccountState): ReadonlyArray<DomainEvent> => [
  ...revokeKeys(account, "operator"),
  AccountClosed.make({ account_id: account.accountId })
]

const make = Effect.map(AccountStore, (accounts) => ({
  /** Closes the account and returns the number of revoked keys. Fails with `NoSuchAccount` if the account is closed already. */
  close: Effect.fn("CloseAccount.close")((accountId: string) =>
    accounts.change(accountId, (account) => {
      const events = decide(account)
      return Effect.succeed({ events, inSameTransaction: () => accounts.eraseContact(accountId), value: events.length - 1 })
    })
  )
}))

export class CloseAccount extends Context.Service<CloseAccount, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/CloseAccount"
) {
  static readonly layer = Layer.effect(CloseAccount, make)
}

/** The operator puts an account on a plan, at once and in either direction (rule 52). */
import { Context, Effect, Layer } from "effect"
import { type AccountState, PlanChanged } from "#domain/accounts/Account.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"
import type { PlanName } from "#domain/callers/Plan.ts"

/** `perMonth` is a number of validations for this account alone; null means the plan's. */
export interface Terms {
  readonly plan: PlanName
  readonly perMonth: number | null
}

/** What the account is on already is no fact. */
export const decide = (state: AccountState, { perMonth, plan }: Terms): ReadonlyArray<DomainEvent> =>
  state.plan === plan && state.perMonth === perMonth
    ? []
    : [PlanChanged.make({ account_id: state.accountId, plan, per_month: perMonth })]

const make = Effect.map(AccountStore, (accounts) => ({
  /** Gives back the terms before. What was used in the month so far counts against the new ones. */
  change: Effect.fn("ChangePlan.change")((accountId: string, terms: Terms) =>
    accounts.change(accountId, (account) => {
      const before: Terms = { plan: account.plan, perMonth: account.perMonth }
      return Effect.succeed({ events: decide(account, terms), value: before })
    })
  )
}))

export class ChangePlan extends Context.Service<ChangePlan, Effect.Success<typeof make>>()(
  "vatproof/domain/accounts/ChangePlan"
) {
  static readonly layer = Layer.effect(ChangePlan, make)
}

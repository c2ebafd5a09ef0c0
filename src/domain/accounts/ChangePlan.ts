/** Changes the plan of an account immediately, to a larger or a smaller plan (rule 52). */
import { Context, Effect, Layer } from "effect"
import { type AccountState } from "#domain/accounts/Account.ts"
import { PlanChanged } from "#domain/accounts/AccountEvents.ts"
import { AccountStore } from "#domain/accounts/AccountStore.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"
import type { PlanName } from "#domain/callers/PlanLimits.ts"

/** `perMonth` is the limit that the operator sets for this account. If it is null, the plan's limit applies. */
export interface Terms {
  readonly plan: PlanName
  readonly perMonth: number | null
}

/** Changes the terms. Returns no event if they are the same as before. */
export const decide = (state: AccountState, { perMonth, plan }: Terms): ReadonlyArray<DomainEvent> =>
  state.plan === plan && state.perMonth === perMonth
    ? []
    : [PlanChanged.make({ account_id: state.accountId, plan, per_month: perMonth })]

const make = Effect.map(AccountStore, (accounts) => ({
  /** Changes the terms and returns the previous ones. Usage of the current month counts towards the new limit. */
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

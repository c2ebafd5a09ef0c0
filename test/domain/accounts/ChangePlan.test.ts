import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { evolve, noAccount } from "#domain/accounts/Account.ts"
import { AccountRegistered, AccountSignedUp, PlanChanged } from "#domain/accounts/AccountEvents.ts"
import { decide, type Terms } from "#domain/accounts/ChangePlan.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

const accountId = "019371c0-5f00-7000-8000-0000000000ac"
const at = DateTime.makeUnsafe("2026-11-21T13:05:00Z")

const registered = AccountRegistered.make({ account_id: accountId, plan: "free", with_email: true, agent_id_hash: null })
const signedUp = AccountSignedUp.make({ account_id: accountId, plan: "free" })
const changed = (terms: Terms) => PlanChanged.make({ account_id: accountId, plan: terms.plan, per_month: terms.perMonth })

const business: Terms = { plan: "business", perMonth: null }
const agreed: Terms = { plan: "enterprise", perMonth: 250_000 }
const free: Terms = { plan: "free", perMonth: null }

const cases: ReadonlyArray<readonly [string, ReadonlyArray<DomainEvent>, Terms, ReadonlyArray<DomainEvent>]> = [
  ["sets the plan of a registered account", [registered], business, [changed(business)]],
  ["sets the plan of an account that signed up", [signedUp], business, [changed(business)]],
  ["sets a limit per month for the account", [registered, changed(business)], agreed, [changed(agreed)]],
  ["changes the plan and removes the limit of the account", [registered, changed(agreed)], free, [changed(free)]],
  [
    "removes the limit of the account and keeps its plan",
    [registered, changed(agreed)],
    { ...agreed, perMonth: null },
    [changed({ ...agreed, perMonth: null })]
  ],
  ["sets the former plan again", [registered, changed(business)], free, [changed(free)]],
  ["records no event for the plan that a new account has", [registered], free, []],
  ["records no event for a plan that the account has", [registered, changed(business)], business, []],
  ["records no event for a limit that the account has", [signedUp, changed(agreed)], agreed, []]
]

describe("ChangePlan", () => {
  it.each(cases)("%s", (_, given, when, then) => {
    const state = given.reduce((before, event) => evolve(before, event, at), noAccount(accountId))
    assert.deepStrictEqual(decide(state, when), then)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { evolve, noAccount } from "#domain/accounts/Account.ts"
import { AccountRegistered, AccountSignedUp, PlanChanged } from "#domain/accounts/AccountEvents.ts"
import { decide, type Terms } from "#domain/accounts/ChangePlan.ts"
import type { DomainEvent } from "#domain/kernel/DomainEvent.ts"

const accountId = "019371c0-5f00-7000-8000-0000000000ac"
const at = DateTime.makeUnsafe("2026-11-21T13:05:00Z")

const registered = AccountRegistered.make({ account_id: accountId, plan: "free", with_email: true, agent_id_hash: null })
const signedUp = AccountSignedUp.make({ account_id: accountId, plan: "free" })
const changed = (terms: Terms) => PlanChanged.make({ account_id: accountId, plan: terms.plan, per_month: terms.perMonth })

const business: Terms = { plan: "business", perMonth: null }
const agreed: Terms = { plan: "enterprise", perMonth: 250_000 }
const free: Terms = { plan: "free", perMonth: null }

const cases: ReadonlyArray<readonly [string, ReadonlyArray<DomainEvent>, Terms, ReadonlyArray<DomainEvent>]> = [
  ["puts a new account on a plan", [registered], business, [changed(business)]],
  ["puts an account that signed up on a plan", [signedUp], business, [changed(business)]],
  ["sets a number of its own", [registered, changed(business)], agreed, [changed(agreed)]],
  ["takes the number away with the plan", [registered, changed(agreed)], free, [changed(free)]],
  [
    "takes the number away alone",
    [registered, changed(agreed)],
    { ...agreed, perMonth: null },
    [changed({ ...agreed, perMonth: null })]
  ],
  ["goes back", [registered, changed(business)], free, [changed(free)]],
  ["does nothing for the plan of a new account", [registered], free, []],
  ["does nothing for the plan it has", [registered, changed(business)], business, []],
  ["does nothing for the number it has", [signedUp, changed(agreed)], agreed, []]
]

describe("ChangePlan", () => {
  it.each(cases)("%s", (_, given, when, then) => {
    const state = given.reduce((before, event) => evolve(before, event, at), noAccount(accountId))
    assert.deepStrictEqual(decide(state, when), then)
  })
})

import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import type { Caller } from "#domain/callers/Caller.ts"
import { admitConfirmation, companyData } from "#domain/receipts/ConfirmationRules.ts"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import { parse } from "#domain/vat/VatId.ts"

const period = billingPeriod(DateTime.makeUnsafe("2026-11-21T12:00:00Z"))
const base = { stream: "s", meter: "m", limit: 10, perMinute: 10 }
const anonymous: Caller = { _tag: "Anonymous", addressHash: "h", ...base }
const onPlan = (plan: PlanName): Caller => ({
  _tag: "Key",
  keyId: "k",
  accountId: "a",
  plan,
  period,
  validUntil: period.end,
  isFormer: false,
  used: 0,
  epoch: 0,
  ...base
})

const german = Result.getOrThrow(parse("DE123456789"))
const austrian = Result.getOrThrow(parse("ATU12345678"))
const northernIrish = Result.getOrThrow(parse("XI123456789"))
const company = { name: "Muster GmbH", street: null, zip: null, city: null }

const outcome = (caller: Caller, vatId: typeof german, requesterVatId: string | null, countries: "DE" | "EU" = "DE") =>
  Result.match(admitConfirmation({ caller, company, requesterVatId }, vatId, countries), {
    onFailure: ({ _tag }): string => _tag,
    onSuccess: ({ requester }) => requester.value
  })

describe("a qualified confirmation", () => {
  // The rows follow the order of the rules: the first row violates all rules, the last rows violate none.
  it.each([
    [anonymous, austrian, null, "ApiKeyRequired"],
    [onPlan("free"), austrian, null, "PaidPlanRequired"],
    [onPlan("starter"), austrian, null, "ConfirmationUnsupported"],
    [onPlan("starter"), german, null, "InvalidRequester"],
    [onPlan("starter"), german, "", "InvalidRequester"],
    [onPlan("starter"), german, "DE12345678", "InvalidRequester"],
    [onPlan("starter"), german, "ATU12345678", "InvalidRequester"],
    [onPlan("starter"), german, "de 811 115 368", "DE811115368"],
    [onPlan("business"), german, "811115368", "DE811115368"],
    [onPlan("enterprise"), german, "DE811115368", "DE811115368"]
  ] as const)(
    "is refused with the error of the first violated rule, otherwise allowed (case %#)",
    (caller, vatId, requester, expected) => {
      assert.strictEqual(outcome(caller, vatId, requester), expected)
    }
  )

  it("is allowed for VAT IDs of other member states, except Northern Ireland, if the operator allows these member states", () => {
    assert.strictEqual(outcome(onPlan("starter"), austrian, "DE811115368", "EU"), "DE811115368")
    assert.strictEqual(outcome(onPlan("free"), austrian, "DE811115368", "EU"), "PaidPlanRequired")
    assert.strictEqual(outcome(onPlan("starter"), northernIrish, "DE811115368", "EU"), "ConfirmationUnsupported")
  })
})

describe("company data", () => {
  const none = { name: undefined, street: undefined, zip: undefined, city: undefined }

  it("is null if every field is missing, empty or blank", () => {
    assert.isNull(companyData(none))
    assert.isNull(companyData({ ...none, name: "", city: "  \t" }))
  })

  it("keeps a single supplied field unchanged", () => {
    assert.deepStrictEqual(companyData({ ...none, zip: " 10115" }), { name: null, street: null, zip: " 10115", city: null })
  })
})

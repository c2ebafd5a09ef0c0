/** API keys on paid plans, and qualified confirmations with these keys. */
import { Effect, Schema } from "effect"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import * as RunningService from "#test/support/RunningService.ts"
import type { Ask, Reply, ServiceClient } from "#test/support/ServiceClient.ts"

/** Registers an account on a paid plan and returns its API key. */
export const newPaidKey = Effect.fnUntraced(function* (client: ServiceClient, plan: PlanName = "business") {
  const key = yield* client.newKey
  yield* RunningService.setPlan(key, plan)
  return key
})

/** The company data that the sandbox has for most German VAT IDs. */
export const muster = {
  company_name: "Muster GmbH",
  company_street: "Musterstraße 1",
  company_zip: "10115",
  company_city: "Berlin"
}

/** Requests a confirmation of `muster`; `more` overrides fields. */
export const confirm = (client: ServiceClient, vatId: string, key: string | undefined, more: Ask["query"] = muster) =>
  client.validate(vatId, { key, query: { requester_vat_id: "DE811115368", ...more } })

/** Path of receipts. */
export const receiptsPath = "/v1/qualified-confirmations"

const Confirmed = Schema.Struct({
  qualified_confirmation: Schema.Struct({ receipt_id: Schema.String, issued_at: Schema.String })
})

/** Decodes the id and the time of the receipt in the response to a confirmation. */
export const decodeConfirmed = Schema.decodeUnknownEffect(Confirmed)

export const receiptIdOf = (reply: Reply) =>
  Effect.map(decodeConfirmed(reply.body), ({ qualified_confirmation }) => qualified_confirmation.receipt_id)

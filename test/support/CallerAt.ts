/** A caller with an API key, for tests without a database. */
import { DateTime } from "effect"
import { billingPeriod } from "#domain/callers/BillingPeriod.ts"
import type { KeyCaller } from "#domain/callers/Caller.ts"

/** Returns a caller on the plan business who was identified in this identity epoch. */
export const callerAt = (epoch: number): KeyCaller => ({
  _tag: "Key",
  keyId: "k",
  accountId: "a",
  plan: "business",
  period: billingPeriod(DateTime.makeUnsafe("2026-11-21T12:00:00Z")),
  validUntil: DateTime.makeUnsafe("2026-12-01T00:00:00Z"),
  isFormer: false,
  used: 0,
  epoch,
  stream: "key-k",
  meter: "key-k",
  limit: 10,
  perMinute: 10
})

/** Events of one account, and the account's state after these events. */
import { DateTime, type Duration, Result } from "effect"
import { evolve, noAccount } from "#domain/accounts/Account.ts"
import { AccountRegistered, AccountSignedUp, EmailVerificationRequested, EmailVerified } from "#domain/accounts/AccountEvents.ts"
import { ApiKeyIssued, ApiKeyRevoked } from "#domain/accounts/ApiKeyEvents.ts"
import type { DomainEvent } from "#domain/log/DomainEvent.ts"

export const account_id = "0192f0c0-0000-7000-8000-000000000001"
export const start = DateTime.makeUnsafe("2026-11-20T12:00:00Z")
export const after = (duration: Duration.Input) => DateTime.addDuration(start, duration)

export type Happened = readonly [DomainEvent, at?: DateTime.Utc]

export const given = (...facts: ReadonlyArray<Happened>) =>
  facts.reduce((state, [event, at = start]) => evolve(state, event, at), noAccount(account_id))

export const signedUp: Happened = [AccountSignedUp.make({ account_id, plan: "free" })]
export const registered: Happened = [AccountRegistered.make({ account_id, plan: "free", with_email: true, agent_id_hash: null })]
export const requested = (at = start): Happened => [EmailVerificationRequested.make({ account_id }), at]
export const verified: Happened = [EmailVerified.make({ account_id, by: "mail" })]
export const issued = (prefix: string, at = start): Happened => [
  ApiKeyIssued.make({ account_id, key_id: `key ${prefix}`, prefix, key_sha256: "00" }),
  at
]
export const revoked = (prefix: string): Happened => [
  ApiKeyRevoked.make({ account_id, key_id: `key ${prefix}`, prefix, by: "owner" })
]

export const prefixes = (count: number) =>
  Array.from({ length: count }, (_, index) => `svc_live_${String(index).padStart(3, "0")}`)
export const candidate = (prefix: string) => ({ keyId: `new ${prefix}`, prefix, sha256: "11" })

/** Returns the tag of the failure, or "accepted". */
export const refusal = (result: Result.Result<unknown, { readonly _tag: string }>) =>
  Result.match(result, { onSuccess: () => "accepted", onFailure: ({ _tag }) => _tag })

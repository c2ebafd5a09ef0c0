/** Who is calling: an API key of an account, or an anonymous client address. */
import type { PlanName } from "#domain/Plan.ts"
import type { BillingPeriod, Usage } from "#domain/Usage.ts"

/** `usage` is what stood on `meter` when the caller was identified; `perMinute` bounds the caller's validations in a minute. */
interface CallerBase {
  /** The stream that keeps this caller's validations. */
  readonly stream: string
  readonly meter: string
  readonly usage: Usage
  readonly perMinute: number
}

export interface KeyCaller extends CallerBase {
  readonly _tag: "Key"
  readonly keyId: string
  readonly accountId: string
  readonly plan: PlanName
  /** The period of `meter`: the one in which the caller was identified, also if the call ends in the next one. */
  readonly period: BillingPeriod
  /** The state of all keys and plans at which this was true; it moves with every revocation and change of plan. */
  readonly epoch: number
}

/** `addressHash` is a keyed hash of the client's address (IPv6 by /64); the address itself is stored nowhere. */
export interface AnonymousCaller extends CallerBase {
  readonly _tag: "Anonymous"
  readonly addressHash: string
}

export type Caller = KeyCaller | AnonymousCaller

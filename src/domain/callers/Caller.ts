/** Who is calling: an API key of an account, or an anonymous client address. */
import type { DateTime } from "effect"
import type { PlanName } from "#domain/callers/Plan.ts"
import type { BillingPeriod } from "#domain/callers/Usage.ts"

interface CallerBase {
  /** The stream that keeps this caller's validations. */
  readonly stream: string
  readonly meter: string
  /** The most that `meter` may reach. */
  readonly limit: number
  /** The most validations in a minute. */
  readonly perMinute: number
}

export interface KeyCaller extends CallerBase {
  readonly _tag: "Key"
  readonly keyId: string
  readonly accountId: string
  readonly plan: PlanName
  /** The period of `meter`: the one in which the caller was identified, also if the call ends in the next one. */
  readonly period: BillingPeriod
  /** Identify the caller anew from then on: the period is over, or the former secret of a rotated key has ended. */
  readonly validUntil: DateTime.Utc
  /** What stood on `meter` when the caller was identified. */
  readonly used: number
  /** The state of all keys and plans that the caller was read from; every revocation and change of a plan moves it. */
  readonly epoch: number
}

/** `addressHash` is a keyed hash of the client's address (IPv6 by /64); the address itself is stored nowhere. */
export interface AnonymousCaller extends CallerBase {
  readonly _tag: "Anonymous"
  readonly addressHash: string
}

export type Caller = KeyCaller | AnonymousCaller

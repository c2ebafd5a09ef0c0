/** The caller: an API key of an account, or an anonymous client address. */
import type { DateTime } from "effect"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import type { BillingPeriod } from "#domain/callers/Usage.ts"

interface CallerBase {
  /** The stream of this caller's validations. */
  readonly stream: string
  readonly meter: string
  /** Maximum of `meter`. */
  readonly limit: number
  /** Maximum validations per minute. */
  readonly perMinute: number
}

export interface KeyCaller extends CallerBase {
  readonly _tag: "Key"
  readonly keyId: string
  readonly accountId: string
  readonly plan: PlanName
  /** The period of `meter`: the one in which the caller was identified, even if the call ends in the next one. */
  readonly period: BillingPeriod
  /** When the caller must be identified again: the period ends, or the former secret of a rotated key. */
  readonly validUntil: DateTime.Utc
  /** The value of `meter` when the caller was identified. */
  readonly used: number
  /** The version of all keys and plans when the caller was read; every revocation and plan change increases it. */
  readonly epoch: number
}

/** `addressHash` is a keyed hash of the client's address (IPv6 by /64); the address itself is never stored. */
export interface AnonymousCaller extends CallerBase {
  readonly _tag: "Anonymous"
  readonly addressHash: string
}

export type Caller = KeyCaller | AnonymousCaller

/** The caller: an API key of an account, or the IP address of a client without a key. */
import type { DateTime } from "effect"
import type { PlanName } from "#domain/callers/PlanLimits.ts"
import type { BillingPeriod } from "#domain/callers/BillingPeriod.ts"

interface CallerBase {
  /** Name of the stream with this caller's validations. */
  readonly stream: string
  /** Name of the meter that counts this caller's validations. */
  readonly meter: string
  /** Maximum number of units on `meter`. */
  readonly limit: number
  /** Maximum number of validations per minute. */
  readonly perMinute: number
}

export interface KeyCaller extends CallerBase {
  readonly _tag: "Key"
  readonly keyId: string
  readonly accountId: string
  readonly plan: PlanName
  /** The month of `meter`: the month in which the caller was identified, even if the call ends in the next month. */
  readonly period: BillingPeriod
  /**
   * Time at which the caller must be identified again: the end of the month, or the time at which the former secret of a rotated
   * key expires.
   */
  readonly validUntil: DateTime.Utc
  /** True for the former secret of a rotated key, which validates and reads only. */
  readonly isFormer: boolean
  /** The value of `meter` when the caller was identified. */
  readonly used: number
  /** The identity epoch in which the caller was read. Every revoked key and every changed plan increases the epoch. */
  readonly epoch: number
}

/** `addressHash` is a keyed hash of the client's IP address (of the /64 prefix for IPv6). The address itself is never stored. */
export interface AnonymousCaller extends CallerBase {
  readonly _tag: "Anonymous"
  readonly addressHash: string
}

export type Caller = KeyCaller | AnonymousCaller

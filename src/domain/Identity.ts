/** Turns what a client presents into a caller. */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { AnonymousCaller, Caller, KeyCaller } from "#domain/Caller.ts"
import type { RateWindow } from "#domain/RateLimits.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** The API key is malformed, unknown or revoked; which of these is nobody's business. */
export class InvalidApiKey extends Schema.TaggedError<InvalidApiKey>()("InvalidApiKey", {}) {
  override get message() {
    return "The API key is not valid. Send a key from POST /v1/register in the header X-Api-Key"
  }
}

/** A caller whose call was counted: `window` is its minute with that call, which may be one too many. */
export interface Admitted<out C extends Caller = Caller> {
  readonly caller: C
  readonly window: RateWindow
}

export class Identity extends Context.Service<
  Identity,
  {
    /** Reads what is known of the key now. What changes later moves the epoch, and the append that charges the caller checks that. */
    readonly byKey: (key: Redacted.Redacted) => Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>
    /** The stream of whoever calls from an IPv4 or IPv6 address without a key; by it a client is told from others. */
    readonly streamOfAddress: (address: string) => string
    /** As `byKey`, and counts a validation in the caller's minute, which starts with the first one. */
    readonly admitByKey: (key: Redacted.Redacted) => Effect.Effect<Admitted<KeyCaller>, InvalidApiKey | StoreUnavailable>
    /** The caller behind an IPv4 or IPv6 address, with what is known of it now; counted as by `admitByKey`. */
    readonly admitByAddress: (address: string) => Effect.Effect<Admitted<AnonymousCaller>, StoreUnavailable>
  }
>()("vatproof/domain/Identity") {}

/** Turns what a client presents into a caller. */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { AnonymousCaller, KeyCaller } from "#domain/Caller.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"

/** The API key is malformed, unknown or revoked; which of these is nobody's business. */
export class InvalidApiKey extends Schema.TaggedError<InvalidApiKey>()("InvalidApiKey", {}) {
  override get message() {
    return "The API key is not valid. Send a key from POST /v1/register in the header X-Api-Key"
  }
}

export class Identity extends Context.Service<
  Identity,
  {
    /** Reads what is known of the key now. What changes later moves the epoch, and the append that charges the caller checks that. */
    readonly byKey: (key: Redacted.Redacted) => Effect.Effect<KeyCaller, InvalidApiKey | StoreUnavailable>
    /** `address` is an IPv4 or IPv6 address. */
    readonly byAddress: (address: string) => Effect.Effect<AnonymousCaller, StoreUnavailable>
  }
>()("vatproof/domain/Identity") {}

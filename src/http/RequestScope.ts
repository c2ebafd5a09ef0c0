/** What a request collects on its way for the headers of its response, whatever that response turns out to be. */
import { Context, MutableRef } from "effect"
import type { RateWindow } from "#domain/RateLimits.ts"
import type { StoreUnavailable } from "#domain/StoreUnavailable.ts"
import type { Usage } from "#domain/Usage.ts"

export interface CollectedHeaders {
  /** The caller's meter, once the caller is known. */
  readonly usage: MutableRef.MutableRef<Usage | null>
  /** The caller's minute, where the endpoint counts in one. */
  readonly window: MutableRef.MutableRef<RateWindow | null>
  /** Why the database did not serve the request, for the log. */
  readonly refusal: MutableRef.MutableRef<StoreUnavailable | null>
}

export const makeRequestScope = (): CollectedHeaders => ({
  usage: MutableRef.make(null),
  window: MutableRef.make(null),
  refusal: MutableRef.make(null)
})

/** The default serves code outside of a request; nobody reads what it collects. */
export const RequestScope = Context.Reference<CollectedHeaders>("vatproof/http/RequestScope", { defaultValue: makeRequestScope })

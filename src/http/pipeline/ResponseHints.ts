/** What a request collects on its way for the headers of its response, whatever that response turns out to be. */
import { Context, MutableRef } from "effect"
import type { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export interface CollectedHeaders {
  /** How the caller stands, once that is known. */
  readonly standing: MutableRef.MutableRef<Standing | null>
  /** Why the database did not serve the request, for the log. */
  readonly refusal: MutableRef.MutableRef<StoreUnavailable | null>
  /** Whether the response waited for an official source. */
  readonly isLive: MutableRef.MutableRef<boolean>
}

export const makeResponseHints = (): CollectedHeaders => ({
  standing: MutableRef.make<Standing | null>(null),
  refusal: MutableRef.make<StoreUnavailable | null>(null),
  isLive: MutableRef.make(false)
})

/** The default serves code outside of a request; nothing reads what it collects. */
export const ResponseHints = Context.Reference<CollectedHeaders>("vatproof/http/pipeline/ResponseHints", {
  defaultValue: makeResponseHints
})

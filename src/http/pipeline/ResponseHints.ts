/** Data that is collected while a request is served, for its response headers, its log line and its metrics. */
import { Context, Effect, MutableRef } from "effect"
import type { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export interface ResponseHints {
  /** The caller's usage and rate limit; null until they are known. */
  readonly standing: MutableRef.MutableRef<Standing | null>
  /** The database failure that caused the response, for the log; null if there was none. */
  readonly refusal: MutableRef.MutableRef<StoreUnavailable | null>
  /** True if the response waited for an official source. */
  readonly isLive: MutableRef.MutableRef<boolean>
}

export const makeResponseHints = (): ResponseHints => ({
  standing: MutableRef.make<Standing | null>(null),
  refusal: MutableRef.make<StoreUnavailable | null>(null),
  isLive: MutableRef.make(false)
})

/** The hints of the current request. Code that runs outside of a request writes to the default value, which no code reads. */
export const ResponseHints = Context.Reference<ResponseHints>("vatproof/http/pipeline/ResponseHints", {
  defaultValue: makeResponseHints
})

/**
 * Runs `work`, which counts a call and stores the new usage in `standing`. Then copies this usage to `hints.standing`, for the response
 * headers. `standing` is null until the call is counted. `hints.standing` cannot show this, because the authentication has already set
 * it to the usage before the call.
 */
export const counting = <A, E, R>(work: (standing: MutableRef.MutableRef<Standing | null>) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(ResponseHints, (hints) => {
    const standing = MutableRef.make<Standing | null>(null)
    const note = Effect.sync(() => {
      const counted = MutableRef.get(standing)
      if (counted !== null) MutableRef.set(hints.standing, counted)
    })
    return Effect.ensuring(work(standing), note)
  })

/** Data that a request collects for the headers of its response, whatever the response is. */
import { Context, Effect, MutableRef } from "effect"
import type { Standing } from "#domain/callers/Standing.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"

export interface CollectedHeaders {
  /** The caller's standing, once known. */
  readonly standing: MutableRef.MutableRef<Standing | null>
  /** Why the database rejected the request, for the log. */
  readonly refusal: MutableRef.MutableRef<StoreUnavailable | null>
  /** True if the response waited for an official source. */
  readonly isLive: MutableRef.MutableRef<boolean>
}

export const makeResponseHints = (): CollectedHeaders => ({
  standing: MutableRef.make<Standing | null>(null),
  refusal: MutableRef.make<StoreUnavailable | null>(null),
  isLive: MutableRef.make(false)
})

/** The default serves code outside of a request; its content is never read. */
export const ResponseHints = Context.Reference<CollectedHeaders>("vatproof/http/pipeline/ResponseHints", {
  defaultValue: makeResponseHints
})

/** Runs work that counts the call of a caller whose usage is known already. Its standing is null until then. */
export const counting = <A, E, R>(work: (standing: MutableRef.MutableRef<Standing | null>) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(ResponseHints, (hints) => {
    const standing = MutableRef.make<Standing | null>(null)
    const note = Effect.sync(() => {
      const counted = MutableRef.get(standing)
      if (counted !== null) MutableRef.set(hints.standing, counted)
    })
    return Effect.ensuring(work(standing), note)
  })

/** Data that is collected while a request is served, for its response headers, its log line and its metrics. */
import { Context, Effect, MutableRef } from "effect"
import { type Call, counted } from "#domain/callers/Admission.ts"
import type { Credential } from "#domain/callers/Identity.ts"
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

/** Runs a call of a client. Notes the caller's standing for the response headers, also if the call fails or is interrupted. */
export const counting = <A, E, R>(credential: Credential, run: (call: Call) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(ResponseHints, (hints) => counted(credential, run, (standing) => void MutableRef.set(hints.standing, standing)))

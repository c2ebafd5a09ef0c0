/** Lets tests observe the calls to the sandbox. */
import { Context, Effect } from "effect"
import type { SourceName } from "#domain/vat/Verdict.ts"

/** What decided an answer, from the highest to the lowest precedence. */
export type DecidedBy = "script" | "request" | "settings" | "magic number" | "register"

/** A call as it arrives. `probe` is false for a validation, and true for any other call to a source. `outcome` is the decided answer. */
export interface Arrival {
  readonly source: SourceName
  readonly endpoint: string
  readonly probe: boolean
  readonly vatId: string | null
  readonly requester: string | null
  readonly by: DecidedBy
  readonly outcome: string
}

/** Ends a call. `httpStatus` is null if the sandbox sent nothing; `abandoned` is true if the client disconnected first. */
export type Finish = (httpStatus: number | null, abandoned: boolean) => Effect.Effect<void>

/** Is called when a call to a source arrives. */
export const Observer = Context.Reference<(arrival: Arrival) => Effect.Effect<Finish>>("vatproof/infra/sandbox/Observer", {
  defaultValue: () => () => Effect.succeed(() => Effect.void)
})

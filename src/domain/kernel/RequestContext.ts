/** The request being served, which appears in all its events, log lines and error bodies. */
import { Context } from "effect"

/** The operator of a command: a name that the operator chooses, and the reason given. */
export interface Operator {
  readonly actor: string
  readonly reason: string | null
}

/**
 * `requestId` is shown to the caller (1-128 characters); `correlationId` is our own UUIDv7; `traceId` has 32 hex digits.
 * `operator` is set for commands only.
 */
export interface ServedRequest {
  readonly requestId: string
  readonly correlationId: string
  readonly traceId: string | null
  readonly operator?: Operator
}

/** For background work and commands. */
export const noRequest: ServedRequest = {
  requestId: "-",
  correlationId: "00000000-0000-0000-0000-000000000000",
  traceId: null
}

export const RequestContext = Context.Reference<ServedRequest>("vatproof/domain/kernel/RequestContext", {
  defaultValue: () => noRequest
})

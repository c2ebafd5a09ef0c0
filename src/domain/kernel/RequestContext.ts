/** The ids of the request that is being served. All its events, log lines and error bodies have them. */
import { Context } from "effect"

/** The operator of a command: a name that the operator chooses, and the reason for the command. */
export interface Operator {
  readonly actor: string
  readonly reason: string | null
}

/**
 * `requestId` is shown to the caller (1-128 characters); `correlationId` is a UUIDv7 that the service generates; `traceId` has 32 hex digits.
 * `operator` is set for commands only.
 */
export interface ServedRequest {
  readonly requestId: string
  readonly correlationId: string
  readonly traceId: string | null
  readonly operator?: Operator
}

/** The value for background work and commands, which have no request. */
export const noRequest: ServedRequest = {
  requestId: "-",
  correlationId: "00000000-0000-0000-0000-000000000000",
  traceId: null
}

export const RequestContext = Context.Reference<ServedRequest>("vatproof/domain/kernel/RequestContext", {
  defaultValue: () => noRequest
})

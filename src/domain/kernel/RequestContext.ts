/** Which request is being served: it goes into every event, log line and error body that the request causes. */
import { Context } from "effect"

/** Who runs a command: a name of the operator's own choice, never of a caller, and the reason that the operator gave. */
export interface Operator {
  readonly actor: string
  readonly reason: string | null
}

/**
 * `requestId` is what the caller sees (1-128 characters); `correlationId` is our own UUIDv7; `traceId` has 32 hex digits. `operator` is set
 * for commands only.
 */
export interface ServedRequest {
  readonly requestId: string
  readonly correlationId: string
  readonly traceId: string | null
  readonly operator?: Operator
}

/** No request: background work of a replica, or a command. */
export const noRequest: ServedRequest = {
  requestId: "-",
  correlationId: "00000000-0000-0000-0000-000000000000",
  traceId: null
}

export const RequestContext = Context.Reference<ServedRequest>("vatproof/domain/kernel/RequestContext", {
  defaultValue: () => noRequest
})

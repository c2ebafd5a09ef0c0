/** Which request is being served: it goes into every event, log line and error body that the request causes. */
import { Context } from "effect"

/** `requestId` is what the caller sees (1-128 characters); `correlationId` is our own UUIDv7; `traceId` has 32 hex digits. */
export interface ServedRequest {
  readonly requestId: string
  readonly correlationId: string
  readonly traceId: string | null
}

/** Outside of a request (probes, commands) the nil UUID stands for "no request". */
export const RequestContext = Context.Reference<ServedRequest>("vatproof/domain/RequestContext", {
  defaultValue: () => ({ requestId: "-", correlationId: "00000000-0000-0000-0000-000000000000", traceId: null })
})

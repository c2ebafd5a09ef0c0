/**
 * What VIES' own error codes mean. They come in an envelope, usually with HTTP 200, and never are a verdict.
 *
 * Sources: the fault strings in https://ec.europa.eu/taxation_customs/vies/checkVatService.wsdl, the test numbers of
 * checkVatTestService.wsdl, and recorded answers of the REST interface (read 2026-11).
 */
import type { Fault } from "#infra/SourceHttp.ts"

const codes = {
  INVALID_INPUT: { reason: "input_rejected", scope: "question", retry: "never" },
  INVALID_REQUESTER_INFO: { reason: "requester_rejected", scope: "question", retry: "never" },
  SERVICE_UNAVAILABLE: { reason: "unavailable", scope: "source", retry: "later" },
  TIMEOUT: { reason: "timeout", scope: "source", retry: "later" },
  // The limit on calls at one moment is free again within a second or two; the limit on calls in a period is not.
  GLOBAL_MAX_CONCURRENT_REQ: { reason: "throttled", scope: "source", retry: "soon" },
  GLOBAL_MAX_CONCURRENT_REQ_TIME: { reason: "throttled", scope: "source", retry: "later" },
  MS_UNAVAILABLE: { reason: "member_state_unavailable", scope: "member_state", retry: "later" },
  MS_MAX_CONCURRENT_REQ: { reason: "throttled", scope: "member_state", retry: "soon" },
  MS_MAX_CONCURRENT_REQ_TIME: { reason: "throttled", scope: "member_state", retry: "later" },
  VAT_BLOCKED: { reason: "blocked", scope: "question", retry: "never" },
  IP_BLOCKED: { reason: "blocked", scope: "source", retry: "later" },
  // The REST front's own: a mandatory field is missing, and an error of theirs.
  "VOW-ERR-11": { reason: "input_rejected", scope: "question", retry: "never" },
  "VOW-ERR-1": { reason: "unavailable", scope: "source", retry: "soon" }
} as const satisfies Record<string, Fault>

/** Every known code with the fault it stands for. */
export const viesCodes: ReadonlyMap<string, Fault> = new Map(Object.entries(codes))

/** A code that nobody published: the source is not able to answer, and it may be able to later. */
export const unknownCode: Fault = { reason: "unavailable", scope: "source", retry: "later" }

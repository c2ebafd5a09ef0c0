/**
 * VIES' error codes and their meaning. VIES sends an error code in an envelope, usually with HTTP 200. An error code is never a
 * verdict.
 *
 * Sources: the fault strings in https://ec.europa.eu/taxation_customs/vies/checkVatService.wsdl, the test numbers of
 * checkVatTestService.wsdl, and recorded answers of the REST interface (read 2026-11).
 */
import type { Fault } from "#infra/sources/SourceHttp.ts"

const codes = {
  INVALID_INPUT: { reason: "input_rejected", scope: "question", retry: "never" },
  INVALID_REQUESTER_INFO: { reason: "requester_rejected", scope: "question", retry: "never" },
  SERVICE_UNAVAILABLE: { reason: "unavailable", scope: "source", retry: "later" },
  TIMEOUT: { reason: "timeout", scope: "source", retry: "later" },
  // The limit on concurrent calls clears within seconds; the limit on calls in a period does not.
  GLOBAL_MAX_CONCURRENT_REQ: { reason: "throttled", scope: "source", retry: "soon" },
  GLOBAL_MAX_CONCURRENT_REQ_TIME: { reason: "throttled", scope: "source", retry: "later" },
  MS_UNAVAILABLE: { reason: "member_state_unavailable", scope: "member_state", retry: "later" },
  MS_MAX_CONCURRENT_REQ: { reason: "throttled", scope: "member_state", retry: "soon" },
  MS_MAX_CONCURRENT_REQ_TIME: { reason: "throttled", scope: "member_state", retry: "later" },
  VAT_BLOCKED: { reason: "blocked", scope: "question", retry: "never" },
  IP_BLOCKED: { reason: "blocked", scope: "source", retry: "later" },
  // Codes of the REST interface alone: a missing mandatory field, and an internal error.
  "VOW-ERR-11": { reason: "input_rejected", scope: "question", retry: "never" },
  "VOW-ERR-1": { reason: "unavailable", scope: "source", retry: "soon" }
} as const satisfies Record<string, Fault>

/** Every known code with its fault. */
export const viesCodes: ReadonlyMap<string, Fault> = new Map(Object.entries(codes))

/** The fault of an unpublished code: the source counts as unavailable, and a later retry is allowed. */
export const unknownCode: Fault = { reason: "unavailable", scope: "source", retry: "later" }

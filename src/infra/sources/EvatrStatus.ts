/**
 * The BZSt's 26 status codes. The code of an answer alone decides its meaning, never the HTTP status: verdicts arrive with 200,
 * 400 and 404, and the BZSt's documents disagree about the HTTP status of several codes. `http` is the HTTP status in the BZSt's
 * list of status messages; null if the list has none.
 *
 * Sources: https://api.evatr.vies.bzst.de/app/v1/info/statusmeldungen and the OpenAPI document of version 1.2.3.14 (read
 * 2026-11). The meanings are our words, not the BZSt's.
 */
import { Schema } from "effect"
import type { Fault } from "#infra/sources/SourceHttp.ts"

/**
 * One status code. `outcome` is a verdict, or a fault if the code gives no verdict. `meaning` completes the sentence "The BZSt
 * said that …".
 */
export interface EvatrStatus {
  readonly http: number | null
  readonly meaning: string
  readonly outcome: "valid" | "invalid" | Fault
}

/** The codes that are verdicts. */
export const VerdictStatus = Schema.Literals(["evatr-0000", "evatr-0003", "evatr-2001", "evatr-2002", "evatr-2006", "evatr-2008"])
export type VerdictStatus = typeof VerdictStatus.Type

const inputRejected: Fault = { reason: "input_rejected", scope: "question", retry: "never" }
const requesterRejected: Fault = { reason: "requester_rejected", scope: "question", retry: "never" }

const verdict = (http: number, outcome: "valid" | "invalid", meaning: string): EvatrStatus => ({ http, outcome, meaning })
const noVerdict = (http: number | null, outcome: Fault, meaning: string): EvatrStatus => ({ http, outcome, meaning })

/** Returns the entry of a status code for a temporary problem of the BZSt. A later retry is allowed. */
const transient = (http: number) =>
  noVerdict(
    http,
    { reason: "unavailable", scope: "source", retry: "later" },
    "it cannot process the request at present and asks to try again later"
  )

const rows = {
  "evatr-0000": verdict(200, "valid", "the VAT ID is valid"),
  "evatr-0001": noVerdict(null, inputRejected, "its privacy notice has not been accepted, which only its web form asks for"),
  "evatr-0002": noVerdict(400, inputRejected, "a mandatory field is missing"),
  "evatr-0003": verdict(400, "valid", "the VAT ID is valid; nothing was compared, because company name or city is missing"),
  "evatr-0004": noVerdict(400, requesterRejected, "the requester's German VAT ID is malformed"),
  "evatr-0005": noVerdict(400, inputRejected, "the VAT ID is malformed"),
  "evatr-0006": noVerdict(
    403,
    { reason: "refused", scope: "question", retry: "never" },
    "the requester's German VAT ID is not admitted to ask for German VAT IDs"
  ),
  "evatr-0007": noVerdict(403, inputRejected, "the call was faulty"),
  "evatr-0008": noVerdict(
    403,
    { reason: "throttled", scope: "source", retry: "later" },
    "the number of qualified requests in this session is used up"
  ),
  "evatr-0011": transient(503),
  "evatr-0012": noVerdict(400, inputRejected, "the VAT ID does not have the structure of its member state"),
  "evatr-0013": transient(503),
  "evatr-1001": transient(503),
  "evatr-1002": transient(500),
  "evatr-1003": transient(500),
  "evatr-1004": transient(500),
  "evatr-2001": verdict(404, "invalid", "the VAT ID is not assigned"),
  "evatr-2002": verdict(200, "invalid", "the VAT ID is not valid yet"),
  "evatr-2003": noVerdict(400, inputRejected, "the VAT ID's country prefix is not valid"),
  "evatr-2004": transient(500),
  "evatr-2005": noVerdict(404, requesterRejected, "the requester's German VAT ID is not valid"),
  "evatr-2006": verdict(200, "invalid", "the VAT ID is no longer valid"),
  "evatr-2007": noVerdict(
    500,
    { reason: "member_state_unavailable", scope: "member_state", retry: "later" },
    "the answer of the member state's register could not be used"
  ),
  "evatr-2008": verdict(200, "valid", "the VAT ID is valid; a comparison is not possible in this special case"),
  "evatr-2011": transient(500),
  "evatr-3011": transient(500)
} as const satisfies Record<VerdictStatus, EvatrStatus> & Record<string, EvatrStatus>

/** Every published code. */
export const evatrStatuses: ReadonlyMap<string, EvatrStatus> = new Map(Object.entries(rows))

/** The fault of an unpublished code: the source counts as unavailable, and a later retry is allowed. */
export const unknownStatus: Fault = { reason: "unavailable", scope: "source", retry: "later" }

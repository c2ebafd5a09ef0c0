/**
 * The BZSt's 26 status codes. The code of an answer alone decides its meaning, never the HTTP status: verdicts arrive with 200,
 * 400 and 404, and the BZSt's documents disagree about the HTTP status of several codes.
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
  readonly meaning: string
  readonly outcome: "valid" | "invalid" | Fault
}

/** The codes that are verdicts. */
export const VerdictStatus = Schema.Literals(["evatr-0000", "evatr-0003", "evatr-2001", "evatr-2002", "evatr-2006", "evatr-2008"])
export type VerdictStatus = typeof VerdictStatus.Type

const inputRejected: Fault = { reason: "input_rejected", scope: "question", retry: "never" }
const requesterRejected: Fault = { reason: "requester_rejected", scope: "question", retry: "never" }

const row = (outcome: EvatrStatus["outcome"], meaning: string): EvatrStatus => ({ outcome, meaning })

/** The entry of a status code for a temporary problem of the BZSt. A later retry is allowed. */
const transient = row(
  { reason: "unavailable", scope: "source", retry: "later" },
  "it cannot process the request at present and asks to try again later"
)

const rows = {
  "evatr-0000": row("valid", "the VAT ID is valid"),
  "evatr-0001": row(inputRejected, "its privacy notice has not been accepted, which only its web form asks for"),
  "evatr-0002": row(inputRejected, "a mandatory field is missing"),
  "evatr-0003": row("valid", "the VAT ID is valid; nothing was compared, because company name or city is missing"),
  "evatr-0004": row(requesterRejected, "the requester's German VAT ID is malformed"),
  "evatr-0005": row(inputRejected, "the VAT ID is malformed"),
  "evatr-0006": row(
    { reason: "refused", scope: "question", retry: "never" },
    "the requester's German VAT ID is not admitted to ask for German VAT IDs"
  ),
  "evatr-0007": row(inputRejected, "the call was faulty"),
  "evatr-0008": row(
    { reason: "throttled", scope: "source", retry: "later" },
    "the number of qualified requests in this session is used up"
  ),
  "evatr-0011": transient,
  "evatr-0012": row(inputRejected, "the VAT ID does not have the structure of its member state"),
  "evatr-0013": transient,
  "evatr-1001": transient,
  "evatr-1002": transient,
  "evatr-1003": transient,
  "evatr-1004": transient,
  "evatr-2001": row("invalid", "the VAT ID is not assigned"),
  "evatr-2002": row("invalid", "the VAT ID is not valid yet"),
  "evatr-2003": row(inputRejected, "the VAT ID's country prefix is not valid"),
  "evatr-2004": transient,
  "evatr-2005": row(requesterRejected, "the requester's German VAT ID is not valid"),
  "evatr-2006": row("invalid", "the VAT ID is no longer valid"),
  "evatr-2007": row(
    { reason: "member_state_unavailable", scope: "member_state", retry: "later" },
    "the answer of the member state's register could not be used"
  ),
  "evatr-2008": row("valid", "the VAT ID is valid; a comparison is not possible in this special case"),
  "evatr-2011": transient,
  "evatr-3011": transient
} as const satisfies Record<VerdictStatus, EvatrStatus> & Record<string, EvatrStatus>

/** Every published code. */
export const evatrStatuses: ReadonlyMap<string, EvatrStatus> = new Map(Object.entries(rows))

/** The fault of an unpublished code: the source counts as unavailable, and a later retry is allowed. */
export const unknownStatus: Fault = { reason: "unavailable", scope: "source", retry: "later" }

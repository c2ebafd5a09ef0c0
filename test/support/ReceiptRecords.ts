/** Receipts as the store returns them, for tests of their representations. */
import { DateTime } from "effect"
import { createHash } from "node:crypto"
import type { Receipt } from "#domain/receipts/Receipt.ts"
import type { ReceiptRecord } from "#domain/receipts/ReceiptReader.ts"

const input: Receipt["input"] = {
  company_name: "Süddeutsche Präzisionswerkzeug- und Überwachungsgerätebau GmbH & Co. KG",
  company_street: "Große Öffnungsstraße 12 a–c",
  company_zip: "80331",
  company_city: ""
}

const result: Receipt["result"] = {
  valid: true,
  name_match: "match",
  street_match: "mismatch",
  zip_match: "not_provided",
  city_match: "not_queried",
  official_name: "ΠΑΡΑΔΕΙΓΜΑ Α.Ε.",
  official_address: "ΕΡΜΟΥ 1\n10563 ΑΘΗΝΑ"
}

/** Fields that may differ from the default receipt. */
export interface Differences {
  readonly receiptId?: string
  readonly target?: string
  readonly requestId?: string | null
  readonly reference?: string
  readonly input?: Partial<Receipt["input"]>
  readonly result?: Partial<Receipt["result"]>
  readonly record?: Partial<Omit<ReceiptRecord, "receipt" | "evidence">>
  readonly request?: string
  readonly response?: string
  readonly isSandbox?: boolean
}

export const receiptRecord = (differences: Differences = {}): ReceiptRecord => {
  const supplied = { ...input, ...differences.input }
  const request = differences.request ?? JSON.stringify({ angefragteUstid: "DE100999120", firmenname: supplied.company_name })
  const response = differences.response ?? '{"anfrageZeitpunkt":"2026-11-21T02:33:04.564553064+01:00","status":"evatr-0000"}'
  return {
    receipt: {
      receipt_id: differences.receiptId ?? "VP-QC-20261121-A7K2M9P4R3",
      target_vat_id: differences.target ?? "DE100999120",
      requester_vat_id: "DE123456789",
      reference: differences.reference ?? null,
      input: supplied,
      result: { ...result, ...differences.result },
      bzst_request_id: differences.requestId === undefined ? "5b1f4b5f03c27585" : differences.requestId,
      issued_at: DateTime.makeUnsafe("2026-11-21T01:33:04.702Z"),
      source: "vatproof-issued",
      ...(differences.isSandbox === true ? { sandbox: true as const } : {})
    },
    position: 1_048_576,
    recordedAt: "2026-11-21T01:33:04.709913Z",
    evidence: { request, response, responseSha256: createHash("sha256").update(response).digest("hex"), httpStatus: 200 },
    bzstStatus: "evatr-0000",
    bzstAnsweredAt: "2026-11-21T01:33:04.564Z",
    validFrom: null,
    validUntil: null,
    calls: [{ startedAt: "2026-11-21T01:33:04.412Z", durationMs: 152 }],
    eventId: "0193714a-1f00-7000-8000-0000000000aa",
    accountId: "0193714a-1f00-7000-8000-0000000000ab",
    keyId: "0193714a-1f00-7000-8000-0000000000ac",
    ...differences.record
  }
}

/** The least that a source can have answered. */
import { DateTime } from "effect"
import type { Answer } from "#domain/Verdict.ts"

export const sourceAnswer: Answer = {
  source: "vies",
  valid: true,
  code: null,
  answered_at: DateTime.makeUnsafe("2026-11-01T12:00:00.000Z"),
  company_name: null,
  company_address: null,
  consultation_number: null,
  valid_from: null,
  valid_until: null,
  evidence: { request: "GET /", response: "{}", response_sha256: "00", http_status: 200 }
}

/** A minimal answer of a source, and the event that contains an answer. */
import { DateTime, Schema } from "effect"
import { type Answer, AnswerFacts, type Attempt } from "#domain/vat/Verdict.ts"
import { VatIdVerificationFailed, VatIdVerified } from "#domain/vat/ValidationEvents.ts"

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

/** The part of an answer that an event contains, as JSON. */
export const answerJson: Schema.JsonObject = Schema.encodeSync(AnswerFacts)(sourceAnswer)

/** Returns the event of a validation that a source has answered. */
export const answered = (vatId: string, answer: Answer = sourceAnswer, attempts: ReadonlyArray<Attempt> = []) =>
  VatIdVerified.make(
    {
      vat_id: vatId,
      force_live: true,
      requester_vat_id: null,
      valid: answer.valid,
      source: answer.source,
      answered_at: answer.answered_at,
      served: "live",
      answer,
      answer_position: null,
      attempts
    },
    answer
  )

/** The event of a validation that no source answered. */
export const unanswered = VatIdVerificationFailed.make({
  vat_id: "ATU12345678",
  force_live: false,
  requester_vat_id: null,
  account_id: null,
  attempts: []
})

/** The data of a validation that was served from the cache. */
export const cached = {
  vat_id: "ATU12345678",
  force_live: false,
  requester_vat_id: null,
  valid: true,
  source: "vies",
  answered_at: "2026-11-21T10:00:00.132Z",
  served: "cache",
  answer: null,
  answer_position: 0,
  attempts: []
}

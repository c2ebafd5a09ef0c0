/** Qualified confirmations from the BZSt (rules 27, 30): one live question, without retry. */
import { Effect, Layer } from "effect"
import {
  type ConfirmationQuestion,
  ConfirmationRefusal,
  ConfirmationSource,
  type Confirmed
} from "#domain/receipts/ConfirmationSource.ts"
import { SourcesUnavailable } from "#domain/vat/Sources.ts"
import type { Attempt, SourceFailure } from "#domain/vat/Verdict.ts"
import { Bzst, type BzstAnswer } from "#infra/sources/Bzst.ts"
import { evatrStatuses } from "#infra/sources/EvatrStatus.ts"
import { ResilientSources } from "#infra/sources/ResilientSources.ts"
import * as SourceTelemetry from "#infra/sources/SourceTelemetry.ts"

/** Minimum Retry-After for clients while the circuit breaker allows calls to the BZSt. */
const retryAfterSeconds = 10

export const layer = Layer.effect(
  ConfirmationSource,
  Effect.gen(function* () {
    const bzst = yield* Bzst
    const guarded = yield* ResilientSources

    const confirm = Effect.fn("ConfirmationSource.confirm")(function* (question: ConfirmationQuestion) {
      const attempts: Array<Attempt> = []
      const call = guarded.bzst.through(question.vatId, bzst.ask(question))
      return yield* SourceTelemetry.traced("bzst", question.vatId, call, (attempt) => attempts.push(attempt)).pipe(
        Effect.map((answer) => confirmedBy(answer, attempts)),
        Effect.catchTag("SourceFailure", (failure) =>
          Effect.flatMap(guarded.bzst.opensInSeconds, (opensIn) =>
            Effect.fail(failed(failure, opensIn ?? retryAfterSeconds, attempts))
          )
        )
      )
    })

    return { confirm }
  })
)

const confirmedBy = (bzstAnswer: BzstAnswer, attempts: ReadonlyArray<Attempt>): Confirmed => {
  const { city_match, name_match, request_id, status: _, street_match, zip_match, ...answer } = bzstAnswer
  return {
    answer,
    requestId: request_id,
    letters: { name: name_match, street: street_match, zip: zip_match, city: city_match },
    attempts
  }
}

/** Reasons of failures that are final: a retry would get the same answer. */
const refusals: ReadonlySet<string> = new Set(["refused", "requester_rejected"])

/** Returns the error for a failed question: a refusal is final, and after any other failure the client may retry. */
const failed = (failure: SourceFailure, opensInSeconds: number, attempts: ReadonlyArray<Attempt>) => {
  // Ignores the status of a malformed answer, because the answer is not reliable.
  const code = failure.reason === "malformed" ? failure.reason : (failure.code ?? failure.reason)
  const meaning = evatrStatuses.get(code)?.meaning
  if (refusals.has(failure.reason)) return new ConfirmationRefusal({ code, meaning: meaning ?? "it refused", attempts })
  const said = meaning === undefined ? code : `${code}: ${meaning}`
  return new SourcesUnavailable({
    message: `The BZSt gave no confirmation (${said}). This says nothing about the VAT ID`,
    attempts,
    retryAfterSeconds: Math.max(1, opensInSeconds, failure.retry_after_s ?? 0)
  })
}

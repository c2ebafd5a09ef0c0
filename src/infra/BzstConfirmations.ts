/** Qualified confirmations from the BZSt (DECISIONS 25, 26): one live question, never repeated by us. */
import { Clock, DateTime, Effect, Layer } from "effect"
import { type ConfirmationQuestion, ConfirmationRefusal, ConfirmationSource, type Confirmed } from "#domain/ConfirmationSource.ts"
import { SourcesUnavailable } from "#domain/Sources.ts"
import type { Attempt, SourceFailure } from "#domain/Verdict.ts"
import { Bzst, type BzstAnswer } from "#infra/Bzst.ts"
import { evatrStatuses } from "#infra/EvatrStatus.ts"
import { GuardedSources } from "#infra/GuardedSources.ts"
import * as SourceAttempt from "#infra/SourceAttempt.ts"

/** When to come back if the source does not say. */
const retryAfterSeconds = 10

export const layer = Layer.effect(
  ConfirmationSource,
  Effect.gen(function* () {
    const bzst = yield* Bzst
    const guarded = yield* GuardedSources

    const confirm = Effect.fn("ConfirmationSource.confirm")(function* (question: ConfirmationQuestion) {
      const started = yield* Clock.currentTimeMillis
      const attempt = Effect.fnUntraced(function* (outcome: Attempt["outcome"], code: string | null) {
        const duration_ms = (yield* Clock.currentTimeMillis) - started
        return { source: "bzst" as const, outcome, code, started_at: DateTime.makeUnsafe(started), duration_ms }
      })
      return yield* SourceAttempt.traced("bzst", question.vatId, guarded.bzst.through(question.vatId, bzst.ask(question))).pipe(
        Effect.flatMap((answer) => Effect.map(attempt("answered", answer.status), (made) => confirmedBy(answer, [made]))),
        Effect.catchTag("SourceFailure", (failure) =>
          Effect.flatMap(Effect.all([attempt(failure.reason, failure.code), guarded.bzst.opensInSeconds]), ([made, opensIn]) =>
            Effect.fail(failed(failure, opensIn ?? retryAfterSeconds, [made]))
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

/** What the BZSt says of who asks is as true tomorrow: a refusal, and no reason to ask again. */
const refusals: ReadonlySet<string> = new Set(["refused", "requester_rejected"])

/** A refusal is final and says so; everything else is a source that cannot answer now. */
const failed = (failure: SourceFailure, opensInSeconds: number, attempts: ReadonlyArray<Attempt>) => {
  // What cannot be read has said nothing, whatever its status.
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

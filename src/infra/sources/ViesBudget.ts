/**
 * The operator's daily budget of questions to VIES, for all replicas (rule 88). Background questions, for which no client waits, may use
 * at most four fifths of it.
 */
import { Duration, Effect, Metric, Schedule } from "effect"
import { RateLimiter, type Spending } from "#domain/callers/RateLimiter.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { overBudget, SourceFailure } from "#domain/vat/Verdict.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"

const source = "vies"
const backgroundShare = 0.8
/** Interval at which the rest of the budget is measured, because other replicas spend it as well. */
const pollEvery = "10 seconds"

/**
 * Returns a function that spends one question of the budget. It fails if the budget is used up or the database is unavailable.
 * Measures the rest of the budget until the scope closes.
 */
export const make = Effect.fnUntraced(function* (perDay: number) {
  const { spendBudget } = yield* RateLimiter
  const ofSource = { "vatproof.source": source }

  const measure = ({ spent }: Spending) =>
    Effect.andThen(
      Metric.update(SourceMetrics.budgetLeft(ofSource), Math.max(0, perDay - spent)),
      Metric.update(SourceMetrics.budget(ofSource), perDay)
    )

  yield* Worker.loop("Measuring the budget of VIES", Effect.flatMap(spendBudget(source, 0, perDay), measure), {
    schedule: Schedule.spaced(pollEvery)
  })

  return Effect.fnUntraced(function* (isBackground: boolean) {
    const limit = isBackground ? Math.floor(perDay * backgroundShare) : perDay
    // A question is not sent during a database outage, because its answer could not be recorded.
    const spending = yield* Effect.mapError(spendBudget(source, 1, limit), () => notAsked(null))
    yield* measure(spending)
    if (!spending.granted) return yield* notAsked(overBudget, spending.endsIn)
  })
})

const notAsked = (code: string | null, wait: Duration.Duration = Duration.zero) =>
  new SourceFailure({
    source,
    reason: "over_budget",
    code,
    scope: "question",
    retry: "never",
    retry_after_s: Math.ceil(Duration.toSeconds(wait))
  })

/** Metrics and span attributes of validations. They identify neither callers nor VAT IDs. */
import { Effect, Exit, Metric, Option, Predicate } from "effect"
import { PlanName } from "#domain/callers/PlanLimits.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import * as Metrics from "#domain/telemetry/Metrics.ts"

/**
 * The label `vatproof.cache.outcome` is `hit` (a fresh answer was served), `stale` (an older answer was served), `miss` (the
 * sources were called) or `bypass` (the request excluded cached answers).
 */
const cacheLookUps = Metrics.counter(
  "vatproof.cache.lookups",
  { unit: "{lookup}", description: "Validations by the outcome of the cache lookup" },
  { "vatproof.cache.outcome": ["hit", "stale", "miss", "bypass"] }
)

/** The labels are `vatproof.verdict` (valid, invalid, none) and `vatproof.source` (vies, bzst, none). */
const verdicts = Metrics.counter(
  "vatproof.verdicts",
  { unit: "{validation}", description: "Validations by verdict and source; both are none if no source answered" },
  { "vatproof.verdict": ["valid", "invalid", "none"], "vatproof.source": ["vies", "bzst", "none"] }
)

/** The label `vatproof.plan` is the plan of the caller. */
const quotaRefusals = Metrics.counter(
  "vatproof.quota.refusals",
  { unit: "{request}", description: "Requests refused because the plan's validations are used up" },
  { "vatproof.plan": ["anonymous", ...PlanName.literals] }
)

/** The properties of a validation that its metrics count. */
interface Counted {
  readonly answer: { readonly valid: boolean; readonly source: string }
  readonly served: "live" | "cache" | "stale"
}

type CacheOutcome = "hit" | "stale" | "miss" | "bypass"

interface MeasuredRequest {
  readonly maxAge: MaxAge
  readonly company: object | null
  /** `opening` is null for an attempt to answer an accepted validation. */
  readonly task?: { readonly opening: object | null } | undefined
}

/**
 * Counts the outcome of a validation and annotates its span. Outcomes are an answer, an outage of the sources, and a used-up
 * quota; the HTTP metrics count other failures. A failed attempt to answer an accepted validation is not counted here: the task
 * engine counts and repeats it.
 */
export const validationMetrics =
  (request: MeasuredRequest) =>
  <A extends Counted, E, R>(validation: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onExit(validation, (exit) => {
      const live = request.maxAge === 0 || request.company !== null ? "bypass" : "miss"
      if (Exit.isSuccess(exit)) {
        const { answer, served } = exit.value
        const outcome = served === "live" ? live : served === "cache" ? "hit" : "stale"
        return note(seriesOf(outcome, answer.valid ? "valid" : "invalid", answer.source))
      }
      if (request.task?.opening === null) return Effect.void
      const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
      if (Predicate.isTagged(failure, "SourcesUnavailable")) return note(seriesOf(live, "none", "none"))
      return isQuotaRefusal(failure) ? Metric.update(quotaRefusals({ "vatproof.plan": String(failure.plan) }), 1) : Effect.void
    })

const isQuotaRefusal = (failure: unknown): failure is { readonly plan: unknown } =>
  Predicate.isTagged(failure, "QuotaExceeded") && Predicate.hasProperty(failure, "plan")

/** The series for one combination of cache outcome, verdict and source. Each series is created once. */
interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly lookUps: Metric.Metric<number, unknown>
  readonly verdicts: Metric.Metric<number, unknown>
}

const seriesByKey = new Map<string, Series>()

const seriesOf = (outcome: CacheOutcome, verdict: "valid" | "invalid" | "none", source: string): Series => {
  const key = `${outcome} ${verdict} ${source}`
  const before = seriesByKey.get(key)
  if (before !== undefined) return before
  const ofVerdict = { "vatproof.verdict": verdict, "vatproof.source": source }
  const ofCache = { "vatproof.cache.outcome": outcome }
  const series = { labels: { ...ofCache, ...ofVerdict }, lookUps: cacheLookUps(ofCache), verdicts: verdicts(ofVerdict) }
  seriesByKey.set(key, series)
  return series
}

const note = ({ labels, lookUps, verdicts }: Series) =>
  Effect.withFiber<void>((fiber) => {
    lookUps.updateUnsafe(1, fiber.context)
    verdicts.updateUnsafe(1, fiber.context)
    const span = fiber.cache.span
    if (span?._tag === "Span" && (span.sampled || labels["vatproof.cache.outcome"] !== "hit"))
      for (const [name, value] of Object.entries(labels)) span.attribute(name, value)
    return Effect.void
  })

/** Metrics and span attributes of the use cases. They identify neither callers nor VAT IDs. */
import { Effect, Exit, Metric, Option, Predicate } from "effect"
import * as Metrics from "#domain/kernel/Metrics.ts"

/**
 * By `vatproof.cache.outcome`: `hit` is fresh, `stale` is older but served, `miss` asked the sources, `bypass` skipped the cache
 * on request.
 */
const cacheLookUps = Metrics.counter("vatproof.cache.lookups", {
  unit: "{lookup}",
  description: "Validations by the state of the cache"
})

/** By `vatproof.verdict` (valid, invalid, none) and `vatproof.source` (vies, bzst, none). */
const verdicts = Metrics.counter("vatproof.verdicts", {
  unit: "{validation}",
  description: "Validations by verdict and source; none: no source could answer"
})

/** By `vatproof.plan`. */
const quotaRefusals = Metrics.counter("vatproof.quota.refusals", {
  unit: "{request}",
  description: "Requests refused because the plan's validations are used up"
})

/** The counted properties of a validation. */
interface Counted {
  readonly answer: { readonly valid: boolean; readonly source: string }
  readonly served: "live" | "cache" | "stale"
}

type CacheOutcome = "hit" | "stale" | "miss" | "bypass"

interface MeasuredRequest {
  readonly forceLive: boolean
  readonly company: object | null
}

/** Counts the outcome of a validation and annotates its span. Other failures are the client's and appear in the HTTP metrics. */
export const validationMetrics =
  (request: MeasuredRequest) =>
  <A extends Counted, E, R>(validation: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onExit(validation, (exit) => {
      const live = request.forceLive || request.company !== null ? "bypass" : "miss"
      if (Exit.isSuccess(exit)) {
        const { answer, served } = exit.value
        const outcome = served === "live" ? live : served === "cache" ? "hit" : "stale"
        return note(seriesOf(outcome, answer.valid ? "valid" : "invalid", answer.source))
      }
      const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
      if (Predicate.isTagged(failure, "SourcesUnavailable")) return note(seriesOf(live, "none", "none"))
      return isQuotaRefusal(failure) ? Metric.update(quotaRefusals({ "vatproof.plan": String(failure.plan) }), 1) : Effect.void
    })

const isQuotaRefusal = (failure: unknown): failure is { readonly plan: unknown } =>
  Predicate.isTagged(failure, "QuotaExceeded") && Predicate.hasProperty(failure, "plan")

/** The series of one combination of outcome, verdict and source, created once. */
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

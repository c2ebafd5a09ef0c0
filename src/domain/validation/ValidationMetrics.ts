/** What the use cases count, and tell the trace about. Nothing of it says who asked, or about whom. */
import { Effect, Exit, Metric, Option, Predicate } from "effect"
import * as Metrics from "#domain/kernel/Metrics.ts"

/** By `vatproof.cache.outcome`: `hit` is fresh, `stale` is older but served, `miss` asked the sources, `bypass` was not to use the cache. */
const cacheLookUps = Metrics.counter("vatproof.cache.lookups", {
  unit: "{lookup}",
  description: "Validations by what the cache had for them"
})

/** By `vatproof.verdict` (valid, invalid, none) and `vatproof.source` (vies, bzst, none). */
const verdicts = Metrics.counter("vatproof.verdicts", {
  unit: "{validation}",
  description: "Validations by their verdict and whose word it is; none: no source could answer"
})

/** By `vatproof.plan`. */
const quotaRefusals = Metrics.counter("vatproof.quota.refusals", {
  unit: "{request}",
  description: "Requests refused because the plan's validations are used up"
})

/** What is counted of a validation. */
interface Counted {
  readonly answer: { readonly valid: boolean; readonly source: string }
  readonly served: "live" | "cache" | "stale"
}

type CacheOutcome = "hit" | "stale" | "miss" | "bypass"

interface Asked {
  readonly forceLive: boolean
  readonly company: object | null
}

/** Counts how a validation ended, and annotates its span. Other failures are the client's, and are in the HTTP metrics. */
export const validationMetrics =
  (asked: Asked) =>
  <A extends Counted, E, R>(validation: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.onExit(validation, (exit) => {
      const live = asked.forceLive || asked.company !== null ? "bypass" : "miss"
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

/** What one outcome is counted in, made once: there are as many as outcomes, verdicts and sources. */
interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly lookUps: Metric.Metric<number, unknown>
  readonly verdicts: Metric.Metric<number, unknown>
}

const known = new Map<string, Series>()

const seriesOf = (outcome: CacheOutcome, verdict: "valid" | "invalid" | "none", source: string): Series => {
  const key = `${outcome} ${verdict} ${source}`
  const before = known.get(key)
  if (before !== undefined) return before
  const ofVerdict = { "vatproof.verdict": verdict, "vatproof.source": source }
  const ofCache = { "vatproof.cache.outcome": outcome }
  const series = { labels: { ...ofCache, ...ofVerdict }, lookUps: cacheLookUps(ofCache), verdicts: verdicts(ofVerdict) }
  known.set(key, series)
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

/** What the use cases count, and tell the trace about. Nothing of it says who asked, or about whom. */
import { Effect, Exit, Metric, Option, Predicate } from "effect"
import * as Instrument from "#domain/Instrument.ts"

/** By `vatproof.cache.outcome`: `hit` is fresh, `stale` is older but served, `miss` asked the sources, `bypass` was not to use the cache. */
const cacheLookUps = Instrument.counter("vatproof.cache.lookups", {
  unit: "{lookup}",
  description: "Validations by what the cache had for them"
})

/** By `vatproof.verdict` (valid, invalid, none) and `vatproof.source` (vies, bzst, none). */
const verdicts = Instrument.counter("vatproof.verdicts", {
  unit: "{validation}",
  description: "Validations by their verdict and whose word it is; none: no source could answer"
})

/** By `vatproof.plan`. */
const quotaRefusals = Instrument.counter("vatproof.quota.refusals", {
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

/** Counts how a validation ended, and annotates its span. Other failures are the caller's, and are in the HTTP metrics. */
export const counted = <A extends Counted, E, R>(validation: Effect.Effect<A, E, R>, asked: Asked): Effect.Effect<A, E, R> =>
  Effect.onExit(validation, (exit) => {
    const live = asked.forceLive || asked.company !== null ? "bypass" : "miss"
    if (Exit.isSuccess(exit)) {
      const { answer, served } = exit.value
      return note(
        served === "live" ? live : served === "cache" ? "hit" : "stale",
        answer.valid ? "valid" : "invalid",
        answer.source
      )
    }
    const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (Predicate.isTagged(failure, "SourcesUnavailable")) return note(live, "none", "none")
    return noteRefusal(failure)
  })

/** As `counted`, for what is repeated from memory; plain code, because it runs for most requests. */
export const makeRepeated = Effect.map(Effect.context<never>(), (context) => {
  const hits = cacheLookUps({ "vatproof.cache.outcome": "hit" })
  const verdictsOf = (source: string) => ({
    valid: verdicts({ "vatproof.verdict": "valid", "vatproof.source": source }),
    invalid: verdicts({ "vatproof.verdict": "invalid", "vatproof.source": source })
  })
  const bySource = new Map<string, ReturnType<typeof verdictsOf>>()
  return {
    answered: ({ source, valid }: Counted["answer"]) => {
      const series = bySource.get(source) ?? verdictsOf(source)
      bySource.set(source, series)
      hits.updateUnsafe(1, context)
      series[valid ? "valid" : "invalid"].updateUnsafe(1, context)
    },
    refused: (failure: unknown) => {
      if (isQuotaRefusal(failure)) quotaRefusals({ "vatproof.plan": String(failure.plan) }).updateUnsafe(1, context)
    }
  }
})

const isQuotaRefusal = (failure: unknown): failure is { readonly plan: unknown } =>
  Predicate.isTagged(failure, "QuotaExceeded") && Predicate.hasProperty(failure, "plan")

const noteRefusal = (failure: unknown): Effect.Effect<void> =>
  isQuotaRefusal(failure) ? Metric.update(quotaRefusals({ "vatproof.plan": String(failure.plan) }), 1) : Effect.void

/** What a span says of a validation. */
export const labelsOf = (outcome: CacheOutcome, { source, valid }: Counted["answer"]) => ({
  "vatproof.cache.outcome": outcome,
  "vatproof.verdict": valid ? "valid" : "invalid",
  "vatproof.source": source
})

const note = Effect.fnUntraced(function* (outcome: CacheOutcome, verdict: string, source: string) {
  const labels = { "vatproof.verdict": verdict, "vatproof.source": source }
  yield* Metric.update(cacheLookUps({ "vatproof.cache.outcome": outcome }), 1)
  yield* Metric.update(verdicts(labels), 1)
  yield* Effect.annotateCurrentSpan({ "vatproof.cache.outcome": outcome, ...labels })
})

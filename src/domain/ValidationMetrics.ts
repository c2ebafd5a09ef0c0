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
      return note(labelsOf(served === "live" ? live : served === "cache" ? "hit" : "stale", verdictOf(answer), answer.source))
    }
    const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (Predicate.isTagged(failure, "SourcesUnavailable")) return note(labelsOf(live, "none", "none"))
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
    answered: (answer: Counted["answer"]) => {
      const series = bySource.get(answer.source) ?? verdictsOf(answer.source)
      bySource.set(answer.source, series)
      hits.updateUnsafe(1, context)
      series[verdictOf(answer)].updateUnsafe(1, context)
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

const verdictOf = ({ valid }: Counted["answer"]) => (valid ? "valid" : "invalid")

/** What a span says of a validation, and what it is counted by. */
const labelsOf = (outcome: CacheOutcome, verdict: "valid" | "invalid" | "none", source: string) => ({
  "vatproof.cache.outcome": outcome,
  "vatproof.verdict": verdict,
  "vatproof.source": source
})

/** What the span of a repetition says. */
export const labelsOfRepeated = (answer: Counted["answer"]) => labelsOf("hit", verdictOf(answer), answer.source)

const note = Effect.fnUntraced(function* (labels: ReturnType<typeof labelsOf>) {
  const { "vatproof.cache.outcome": outcome, ...verdict } = labels
  yield* Metric.update(cacheLookUps({ "vatproof.cache.outcome": outcome }), 1)
  yield* Metric.update(verdicts(verdict), 1)
  yield* Effect.annotateCurrentSpan(labels)
})

/** What this process knows to be wrong with its evidence: told to operators by `/readyz` and by metrics. */
import { Context, Effect, Layer, Metric, MutableRef, Schema } from "effect"
import * as Metrics from "#domain/kernel/Metrics.ts"

/** What can be found altered: a cached answer, an event that is about to be served, or something that the scrubber found. */
export type EvidenceKind = "answer" | "event" | "scrub"

/**
 * Evidence is not what was signed, so it is not served. Used as a defect: callers can do nothing about it, and the error body has a code of
 * its own for it.
 */
export class EvidenceAltered extends Schema.TaggedError<EvidenceAltered>()("EvidenceAltered", { what: Schema.String }) {
  override get message() {
    return `${this.what}; "vatproof audit verify" tells more`
  }
}

/** `notary` says why the notary signs nothing; null while it does. `altered` are the newest findings. */
export interface IntegrityReport {
  readonly notary: string | null
  readonly altered: ReadonlyArray<string>
}

const alteredEvidence = Metrics.counter("vatproof.evidence.altered", {
  unit: "{finding}",
  description: "Evidence that was not what was signed, and was not served"
})

const notaryRefused = Metrics.gauge("vatproof.notary.refused", {
  unit: "{notary}",
  description: "1 while the notary refuses to sign a log that it does not know"
})()

/** Findings that `/readyz` repeats. */
const maxFindings = 10

export class Integrity extends Context.Service<
  Integrity,
  {
    /** Reports evidence that is not what was signed. `what` names positions, and nothing personal. */
    readonly found: (kind: EvidenceKind, what: string) => Effect.Effect<void>
    /** Reports it, and ends the request with EvidenceAltered. */
    readonly refuse: (kind: EvidenceKind, what: string) => Effect.Effect<never>
    /** Says why the notary signs nothing, or null once it signs. */
    readonly notary: (refusal: string | null) => Effect.Effect<void>
    readonly report: Effect.Effect<IntegrityReport>
  }
>()("vatproof/domain/audit/Integrity") {
  static readonly layer = Layer.effect(
    Integrity,
    Effect.gen(function* () {
      const state = MutableRef.make<IntegrityReport>({ notary: null, altered: [] })
      yield* Metric.update(notaryRefused, 0)
      yield* Metric.update(alteredEvidence({ "vatproof.evidence": "event" }), 0)
      const found = (kind: EvidenceKind, what: string) =>
        Effect.suspend(() => {
          MutableRef.update(state, (before) => ({
            ...before,
            altered: [...before.altered.filter((known) => known !== what), what].slice(-maxFindings)
          }))
          return Metric.update(alteredEvidence({ "vatproof.evidence": kind }), 1)
        })
      return Integrity.of({
        found,
        refuse: (kind, what) => Effect.andThen(found(kind, what), Effect.die(new EvidenceAltered({ what }))),
        notary: (refusal) =>
          Effect.suspend(() => {
            MutableRef.update(state, (before) => ({ ...before, notary: refusal }))
            return Metric.update(notaryRefused, refusal === null ? 0 : 1)
          }),
        report: Effect.sync(() => MutableRef.get(state))
      })
    })
  )
}

/** Collects the defects that this process has found in stored evidence, and reports them to operators by `/readyz` and metrics. */
import { Context, Effect, Layer, Metric, MutableRef, Schema } from "effect"
import * as Metrics from "#domain/telemetry/Metrics.ts"

/** Where altered evidence was found: in a cached answer, in an event about to be served, or by the scrubber. */
const evidenceKinds = ["answer", "event", "scrub"] as const
export type EvidenceKind = (typeof evidenceKinds)[number]

/**
 * Stored evidence differs from the signed evidence, so it is not served. The error is a defect (`Effect.die`), because no caller
 * can handle it. The response has the code EVIDENCE_ALTERED.
 */
export class EvidenceAltered extends Schema.TaggedError<EvidenceAltered>()("EvidenceAltered", { finding: Schema.String }) {
  override get message() {
    return `${this.finding}; run "vatproof audit verify" for details`
  }
}

/**
 * `notary` is the reason why the notary does not sign; null while it
 * signs. `altered` lists the newest findings of altered evidence.
 */
export interface IntegrityReport {
  readonly notary: string | null
  readonly altered: ReadonlyArray<string>
}

const alteredEvidence = Metrics.counter(
  "vatproof.evidence.altered",
  {
    unit: "{finding}",
    description: "Findings of stored evidence that differs from the signed evidence, so that it is not served"
  },
  { "vatproof.evidence": evidenceKinds }
)

const notaryRefused = Metrics.gauge("vatproof.notary.refused", {
  unit: "{notary}",
  description: "1 while the notary refuses to sign, because the log does not continue the signed history or was never signed"
})()

/** Maximum number of findings in `/readyz`. */
const maxFindings = 10

export class Integrity extends Context.Service<
  Integrity,
  {
    /** Reports altered evidence. `finding` contains positions and no personal data. */
    readonly reportAltered: (kind: EvidenceKind, finding: string) => Effect.Effect<void>
    /** Reports altered evidence and ends the request with EvidenceAltered. */
    readonly refuse: (kind: EvidenceKind, finding: string) => Effect.Effect<never>
    /** Sets the reason why the notary does not sign; null once it signs. */
    readonly notary: (refusal: string | null) => Effect.Effect<void>
    readonly report: Effect.Effect<IntegrityReport>
  }
>()("vatproof/domain/log/Integrity") {
  static readonly layer = Layer.effect(
    Integrity,
    Effect.gen(function* () {
      const state = MutableRef.make<IntegrityReport>({ notary: null, altered: [] })
      yield* Metric.update(notaryRefused, 0)
      const reportAltered = (kind: EvidenceKind, finding: string) =>
        Effect.suspend(() => {
          MutableRef.update(state, (before) => ({
            ...before,
            altered: [...before.altered.filter((other) => other !== finding), finding].slice(-maxFindings)
          }))
          return Metric.update(alteredEvidence({ "vatproof.evidence": kind }), 1)
        })
      return Integrity.of({
        reportAltered,
        refuse: (kind, finding) => Effect.andThen(reportAltered(kind, finding), Effect.die(new EvidenceAltered({ finding }))),
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

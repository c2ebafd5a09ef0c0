/** One attempt at an official source as telemetry sees it: a client span and a count. What was asked about is in neither. */
import { Effect, Exit, Metric, Option } from "effect"
import type { VatId } from "#domain/VatId.ts"
import type { SourceFailure, SourceName } from "#domain/Verdict.ts"
import * as SourceMetrics from "#infra/SourceMetrics.ts"

/** Runs `call` in a span of its own. The name of the register is in it, the number is not. */
export const traced = <A extends { readonly code: string | null }, R>(
  source: SourceName,
  { memberState }: VatId,
  call: Effect.Effect<A, SourceFailure, R>
): Effect.Effect<A, SourceFailure, R> =>
  call.pipe(
    Effect.onExit((exit) => {
      const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
      const code = Exit.isSuccess(exit) ? exit.value.code : (failure?.code ?? null)
      const outcome = Exit.isSuccess(exit) ? "answered" : (failure?.reason ?? "interrupted")
      return note(source, outcome, code)
    }),
    Effect.withSpan(
      `${source} check`,
      { kind: "client", attributes: { "vatproof.source": source, "vatproof.member_state": memberState.prefix } },
      { captureStackTrace: false }
    )
  )

const note = Effect.fnUntraced(function* (source: SourceName, outcome: string, code: string | null) {
  yield* Metric.update(SourceMetrics.attempts({ "vatproof.source": source, "vatproof.outcome": outcome }), 1)
  yield* Effect.annotateCurrentSpan({
    "vatproof.outcome": outcome,
    ...(code === null ? {} : { "vatproof.source.code": code }),
    ...(outcome === "answered" || outcome === "interrupted" ? {} : { "error.type": outcome })
  })
})

/** Says of the trace that the second source had to be asked; such a trace is kept. */
export const failedOver = Effect.andThen(
  Metric.update(SourceMetrics.failovers, 1),
  Effect.annotateCurrentSpan("vatproof.failover", true)
)

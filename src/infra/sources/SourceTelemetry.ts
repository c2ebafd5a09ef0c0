/** Records an attempt to query a source: a span, a metric, and an `Attempt` for the event. Span and metric exclude the VAT ID. */
import { DateTime, Effect, Exit, Metric, Option } from "effect"
import type { VatId } from "#domain/vat/VatId.ts"
import type { Attempt, SourceFailure, SourceName } from "#domain/vat/Verdict.ts"
import * as SourceMetrics from "#infra/sources/SourceMetrics.ts"

/** Runs `call` in a span of its own and gives the ended attempt to `record`. The span names the member state, not the VAT ID. */
export const traced = <A extends { readonly code: string | null }>(
  source: SourceName,
  { memberState }: VatId,
  call: Effect.Effect<A, SourceFailure>,
  record: (attempt: Attempt) => void
): Effect.Effect<A, SourceFailure> =>
  Effect.clockWith((clock) => {
    const startedMs = clock.currentTimeMillisUnsafe()
    const noted = Effect.onExit(call, (exit) => {
      const failure = Option.getOrUndefined(Exit.findErrorOption(exit))
      const code = Exit.isSuccess(exit) ? exit.value.code : (failure?.code ?? null)
      const outcome = Exit.isSuccess(exit) ? "answered" : failure?.reason
      record({
        source,
        // A call without an outcome was interrupted. Its attempt is reported only if the timeout of the look-up interrupted the
        // call.
        outcome: outcome ?? "timeout",
        code,
        started_at: DateTime.makeUnsafe(startedMs),
        duration_ms: clock.currentTimeMillisUnsafe() - startedMs
      })
      return note(source, outcome ?? "interrupted", code)
    })
    return noted.pipe(
      Effect.withSpan(
        `POST ${SourceMetrics.checkPaths[source]}`,
        { kind: "client", attributes: { "vatproof.source": source, "vatproof.member_state": memberState.prefix } },
        { captureStackTrace: false }
      )
    )
  })

const note = (source: SourceName, outcome: string, code: string | null) =>
  Effect.withFiber((fiber) => {
    const span = fiber.cache.span
    const status = span?._tag === "Span" ? Number(span.attributes.get("http.response.status_code") ?? 0) : 0
    return Effect.andThen(
      Metric.update(SourceMetrics.attempts({ "vatproof.source": source, "vatproof.outcome": outcome }), 1),
      Effect.annotateCurrentSpan({
        "vatproof.outcome": outcome,
        ...(code === null ? {} : { "vatproof.source.code": code }),
        ...(outcome === "answered" || outcome === "interrupted" ? {} : { "error.type": status >= 400 ? String(status) : outcome })
      })
    )
  })

/** Counts a failover and marks its trace, which is then exported even if it is not sampled. */
export const failedOver = Effect.andThen(
  Metric.update(SourceMetrics.failovers, 1),
  Effect.annotateCurrentSpan("vatproof.failover", true)
)

/** VIES first; the BZSt for German VAT IDs where VIES has no verdict (INTERFACE 4.3, DECISIONS 20-24). */
import { Clock, Context, DateTime, Effect, ExecutionPlan, Layer, Ref, Schedule } from "effect"
import { type LookUp, Sources, SourcesUnavailable } from "#domain/Sources.ts"
import { isGerman, type VatId } from "#domain/VatId.ts"
import type { Answer, Attempt, SourceFailure, SourceName } from "#domain/Verdict.ts"
import { GuardedSources } from "#infra/GuardedSources.ts"
import * as SourceAttempt from "#infra/SourceAttempt.ts"
import * as SourceProbes from "#infra/SourceProbes.ts"

/** `requester` asks the BZSt where the caller names no requester of their own. */
export interface SourceFailoverOptions {
  readonly requester: VatId | null
  /** Names this replica in the events about the sources. */
  readonly replica: string
}

/** A step of the plan: the source that is asked in it. */
class Asked extends Context.Service<
  Asked,
  { readonly source: SourceName; readonly ask: (lookUp: LookUp) => Effect.Effect<Answer, SourceFailure> }
>()("vatproof/infra/Asked") {}

/** Attempts at VIES within one request, with 100 to 400 ms in between. The BZSt asks not to be repeated at once. */
const viesAttempts = 3
const pause = Schedule.exponential("150 millis").pipe(Schedule.jittered)
/** What one look-up may take in all. */
const deadline = "35 seconds"

const make = Effect.fnUntraced(function* (options: SourceFailoverOptions) {
  const guarded = yield* GuardedSources

  const requesterAtBzst = (lookUp: LookUp) => lookUp.requester ?? options.requester

  const viesStep = Asked.context({ source: "vies", ask: ({ requester, vatId }) => guarded.vies.ask({ vatId, requester }) })
  const bzstStep = Asked.context({
    source: "bzst",
    ask: (lookUp) =>
      Effect.andThen(SourceAttempt.failedOver, guarded.bzst.ask({ vatId: lookUp.vatId, requester: requesterAtBzst(lookUp) }))
  })
  const viesOnly = ExecutionPlan.make({ provide: viesStep, attempts: viesAttempts, schedule: pause, while: isWorthRepeating })
  const viesThenBzst = ExecutionPlan.make(
    { provide: viesStep, attempts: viesAttempts, schedule: pause, while: isWorthRepeating },
    { provide: bzstStep }
  )

  const lookUp = Effect.fn("Sources.lookUp")(function* (question: LookUp) {
    const attempts = yield* Ref.make<ReadonlyArray<Attempt>>([])
    const mayAskBzst = question.mayFallBack && isGerman(question.vatId) && requesterAtBzst(question) !== null
    const answer = yield* Effect.flatMap(Asked, (asked) => recorded(attempts, asked, question)).pipe(
      Effect.withExecutionPlan(mayAskBzst ? viesThenBzst : viesOnly),
      Effect.timeout(deadline),
      Effect.catchTag(["SourceFailure", "TimeoutError"], (failure) => {
        const asked = failure._tag === "SourceFailure" ? (failure.retry_after_s ?? 0) : 0
        return Effect.flatMap(Ref.get(attempts), (made) => unavailable(question, made, asked))
      })
    )
    return { answer, attempts: yield* Ref.get(attempts) }
  })

  const unavailable = Effect.fnUntraced(function* (question: LookUp, attempts: ReadonlyArray<Attempt>, asked: number) {
    const opensIn = yield* guarded.vies.opensInSeconds
    const tried = attempts.map((attempt) => `${attempt.source}: ${attempt.code ?? attempt.outcome}`).join(", ")
    const message = `No source can answer right now (${tried}).${whyNotBzst(question, requesterAtBzst(question))} This says nothing about the VAT ID: retry later`
    return yield* new SourcesUnavailable({ message, attempts, retryAfterSeconds: Math.max(opensIn ?? 10, asked, 1) })
  })

  const status = Effect.gen(function* () {
    const [viesStatus, bzstStatus] = yield* Effect.all([guarded.vies.status, guarded.bzst.status])
    const viesRefuses = yield* guarded.vies.refuses(SourceProbes.anyGermanVatId)
    const failover = viesRefuses && bzstStatus.state !== "unavailable"
    return {
      vies: viesStatus,
      bzst: bzstStatus,
      active: failover ? ("bzst" as const) : ("vies" as const),
      failoverActive: failover
    }
  })

  yield* SourceProbes.run([guarded.vies, guarded.bzst], options.replica)

  return Sources.of({ lookUp, status })
})

const isWorthRepeating = (failure: SourceFailure) => failure.retry === "soon"

const recorded = Effect.fnUntraced(function* (
  attempts: Ref.Ref<ReadonlyArray<Attempt>>,
  asked: Asked["Service"],
  question: LookUp
) {
  const started = yield* Clock.currentTimeMillis
  const note = (outcome: Attempt["outcome"], code: string | null) =>
    Effect.flatMap(Clock.currentTimeMillis, (ended) =>
      Ref.update(attempts, (before) => [
        ...before,
        { source: asked.source, outcome, code, started_at: DateTime.makeUnsafe(started), duration_ms: ended - started }
      ])
    )
  return yield* SourceAttempt.traced(asked.source, question.vatId, asked.ask(question)).pipe(
    Effect.tap((answer) => note("answered", answer.code)),
    Effect.tapError((failure) => note(failure.reason, failure.code)),
    // The look-up's own time was over.
    Effect.onInterrupt(() => note("timeout", null))
  )
})

const whyNotBzst = ({ mayFallBack, vatId }: LookUp, requester: VatId | null) => {
  if (!isGerman(vatId)) return ""
  if (!mayFallBack) return " The BZSt answers callers with an API key only."
  return requester === null ? " The BZSt was not asked: it wants your own German VAT ID in requester_vat_id." : ""
}

export const layer = (options: SourceFailoverOptions) => Layer.effect(Sources, make(options))

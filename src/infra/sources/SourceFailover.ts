/** Asks VIES first, and the BZSt about German VAT IDs for which VIES gives no verdict (rules 18-24). */
import { Effect, Layer, Schedule } from "effect"
import { memberStates } from "#domain/vat/MemberStates.ts"
import { type LookUp, type MemberStateStatus, Sources, SourcesUnavailable } from "#domain/vat/Sources.ts"
import { isGerman, type VatId } from "#domain/vat/VatId.ts"
import type { Attempt, SourceFailure } from "#domain/vat/Verdict.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { whenSampled } from "#domain/telemetry/WhenSampled.ts"
import type { Lend } from "#infra/sources/OperatorRequester.ts"
import { ResilientSources } from "#infra/sources/ResilientSources.ts"
import * as SourceTelemetry from "#infra/sources/SourceTelemetry.ts"
import * as SourceProbes from "#infra/sources/SourceProbes.ts"

/**
 * `requester` is the German VAT ID for queries to the BZSt if the caller sends no German requester. `lend` runs a question to VIES with
 * the operator's requester.
 */
export interface SourceFailoverOptions {
  readonly requester: VatId | null
  readonly lend?: Lend
  /** The name of this replica in events about the sources. */
  readonly replica: string
}

/**
 * Maximum number of attempts at VIES in one look-up. A background look-up makes one, because its task is tried again. The BZSt gets
 * one attempt, because it asks clients not to retry at once.
 */
const viesAttempts = 3
/** The pauses between the attempts start at 150 ms, double each time, and vary by ±20 %. */
const pauses = Schedule.exponential("150 millis").pipe(Schedule.jittered)
/** Timeout of the whole look-up. */
const deadline = "35 seconds"

/** The prefix of German VAT IDs. */
const germany = "DE"

const lendNone: Lend = (ask) => ask(null)

const make = Effect.fnUntraced(function* (options: SourceFailoverOptions) {
  const { lend = lendNone } = options
  const guarded = yield* ResilientSources
  /** The time of the newest answer about each member state, on the monotonic clock. */
  const answered = new Map<string, number>()

  /** The BZSt accepts German requesters only. */
  const requesterAtBzst = ({ requester }: LookUp) => (requester !== null && isGerman(requester) ? requester : options.requester)

  const lookUp = Effect.fnUntraced(function* (question: LookUp) {
    const { hasKey, isBackground = false, mayFallBack, requester, vatId } = question
    const attempts: Array<Attempt> = []
    const record = (attempt: Attempt) => attempts.push(attempt)
    // Callers do not share an answer to a caller's own requester, because its consultation number belongs to this caller.
    const isShared = requester === null
    let asked = requester
    const bzstRequester = requesterAtBzst(question)
    const askViesFor = (asking: VatId | null) => {
      asked = asking
      return SourceTelemetry.traced("vies", vatId, guarded.vies.ask({ vatId, requester: asking, isShared, isBackground }), record)
    }
    const asksVies = retried(
      requester === null && hasKey ? lend(askViesFor) : askViesFor(requester),
      isBackground ? 1 : viesAttempts
    )
    const asksBzst = Effect.suspend(() => {
      const asks = guarded.bzst.ask({ vatId, requester: bzstRequester, isShared })
      return SourceTelemetry.traced("bzst", vatId, Effect.andThen(SourceTelemetry.failedOver, asks), record)
    })
    const mayAskBzst = mayFallBack && isGerman(vatId) && bzstRequester !== null
    const answer = yield* (mayAskBzst ? Effect.catchTag(asksVies, "SourceFailure", () => asksBzst) : asksVies).pipe(
      Effect.timeout(deadline),
      Effect.catchTag(["SourceFailure", "TimeoutError"], (failure) =>
        unavailable(question, attempts, failure._tag === "SourceFailure" ? (failure.retry_after_s ?? 0) : 0)
      )
    )
    answered.set(vatId.memberState.prefix, yield* monotonicMs)
    return { answer, attempts, requester: answer.source === "vies" ? asked : requester }
  }, whenSampled("Sources.lookUp"))

  const unavailable = Effect.fnUntraced(function* (question: LookUp, attempts: ReadonlyArray<Attempt>, requestedSeconds: number) {
    const opensIn = yield* guarded.vies.opensInSeconds
    const tried = attempts.map((attempt) => `${attempt.source}: ${attempt.code ?? attempt.outcome}`).join(", ")
    const message = `No source can answer right now (${tried}).${whyNotBzst(question, requesterAtBzst(question))} This says nothing about the VAT ID: retry later`
    return yield* new SourcesUnavailable({ message, attempts, retryAfterSeconds: Math.max(opensIn ?? 10, requestedSeconds, 1) })
  })

  /** Returns the state of look-ups for one member state. The BZSt is a fallback for Germany only. */
  const memberStateStatus = Effect.fnUntraced(function* (prefix: string): Effect.fn.Return<MemberStateStatus> {
    const vies = yield* guarded.vies.register(prefix)
    const answeredMs = answered.get(prefix) ?? null
    if (vies.state === "operational" || prefix !== germany) return { prefix, ...vies, answeredMs }
    const bzst = yield* guarded.bzst.register(prefix)
    return bzst.state === "unavailable"
      ? { prefix, state: vies.state, sinceMs: Math.max(vies.sinceMs, bzst.sinceMs), answeredMs }
      : { prefix, state: "degraded", sinceMs: vies.sinceMs, answeredMs }
  })

  const status = Effect.gen(function* () {
    const [viesStatus, bzstStatus] = yield* Effect.all([guarded.vies.status, guarded.bzst.status])
    const german = yield* guarded.vies.register(germany)
    const failover = german.state === "unavailable" && bzstStatus.state !== "unavailable"
    return {
      vies: viesStatus,
      bzst: bzstStatus,
      memberStates: yield* Effect.forEach(memberStates.keys(), memberStateStatus),
      active: failover ? ("bzst" as const) : ("vies" as const),
      failoverActive: failover
    }
  })

  yield* SourceProbes.run([guarded.vies, guarded.bzst], options.replica)

  return Sources.of({ lookUp, status })
})

/** Retries an attempt at VIES if its failure may end within a second (`soon`). */
const retried = <A>(attempt: Effect.Effect<A, SourceFailure>, maxAttempts: number) =>
  Effect.retry(attempt, { schedule: pauses, times: maxAttempts - 1, while: ({ retry }) => retry === "soon" })

const whyNotBzst = ({ mayFallBack, vatId }: LookUp, requester: VatId | null) => {
  if (!isGerman(vatId)) return ""
  if (!mayFallBack) return " The BZSt was not asked: it is used only for callers with an API key."
  return requester === null ? " The BZSt was not asked: it requires your own German VAT ID in requester_vat_id." : ""
}

export const layer = (options: SourceFailoverOptions) => Layer.effect(Sources, make(options))

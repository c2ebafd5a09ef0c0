/**
 * Answers accepted validations: claims due tasks, calls the sources, and records the answer, which closes the task. Every replica
 * runs one engine. If a replica is killed, the leases of its tasks expire, and another replica claims the tasks. The log stores
 * only one closing event of a task.
 */
import { Cause, DateTime, Duration, Effect, Exit, FiberSet, Layer, Metric, Random, Schedule } from "effect"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { backgroundCall } from "#domain/callers/Admission.ts"
import { Identity } from "#domain/callers/Identity.ts"
import * as Metrics from "#domain/telemetry/Metrics.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { TraceLinks } from "#domain/telemetry/TraceLinks.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { monotonicMs } from "#domain/concurrency/MonotonicTime.ts"
import { quotaDelay, quotaFailure, rejectionDelay, retryDelay } from "#domain/pending/TaskDelays.ts"
import { closingId } from "#domain/validation/ValidationTask.ts"
import * as BzstPacing from "#domain/pending/BzstPacing.ts"
import * as TaskPacing from "#domain/pending/TaskPacing.ts"
import { type AcceptedTask, type ClaimedTask, type Deferral, TaskQueue } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { Sources, type SourcesUnavailable } from "#domain/vat/Sources.ts"
import { type Attempt, overBudget } from "#domain/vat/Verdict.ts"
import { ValidateVatId, type ValidationFailure } from "#domain/validation/ValidateVatId.ts"

/** Polling interval for tasks that become due or that other replicas accept. */
const poll = Duration.seconds(1)
/** Minimum interval between two claims of a replica, because each claim reads the tasks of all member states. */
const betweenClaims = Duration.millis(50)
/** Interval between searches for tasks that waited for quota and whose API key has quota again. */
const resumeEvery = Duration.seconds(5)
/** Interval at which leases are extended: a third of their length (PgTaskQueue). */
const heartbeat = Duration.seconds(10)

/**
 * The label `vatproof.outcome` is `closed`, `waiting` (the task is tried again), or `failed` (a defect, a database outage or a
 * shutdown).
 */
const attempts = Metrics.counter(
  "vatproof.tasks.attempts",
  { unit: "{attempt}", description: "Attempts to answer accepted validations" },
  { "vatproof.outcome": ["closed", "waiting", "failed"] }
)

/** Result of an attempt: the task is closed, or it waits for the next attempt. */
type Outcome = { readonly _tag: "Closed" } | ({ readonly _tag: "Waits" } & Deferral)

const closed: Outcome = { _tag: "Closed" }
const waits = (wait: Duration.Duration, failure: string | null, isOutage = false): Outcome => ({
  _tag: "Waits",
  wait,
  failure,
  isOutage
})

const outcomeOf = (exit: Exit.Exit<Outcome, unknown>) =>
  Exit.isFailure(exit) ? "failed" : exit.value._tag === "Closed" ? "closed" : "waiting"

/** Other replicas may try the task, or other tasks of its register, at once. */
const release: Deferral = { wait: Duration.zero, failure: null, isOutage: false }

const makeAttempt = Effect.gen(function* () {
  const crypto = yield* Crypto
  const identity = yield* Identity
  const keyedHash = yield* KeyedHash
  const queue = yield* TaskQueue
  const bzstPacing = yield* BzstPacing.make
  const inTurn = yield* BzstPacing.makeInTurn
  const { validate } = yield* ValidateVatId

  const answer = Effect.fnUntraced(function* (
    task: ClaimedTask,
    { keyId, vatId }: AcceptedTask,
    request: NonNullable<AcceptedTask["request"]>
  ): Effect.fn.Return<Outcome, ValidationFailure> {
    yield* identity.refreshKeyId(keyId)
    const isForBzst = request.company !== null || vatId.startsWith("DE")
    // The question is a key in the table of rate limits. It has a keyed hash of the company data, so that the table does not
    // contain the data itself.
    const company = request.company === null ? "" : keyedHash.of("bzst", JSON.stringify(request.company))
    const question = `${vatId}/${request.requesterVatId ?? ""}/${company}`
    const bzstWait = isForBzst ? yield* bzstPacing(question, task) : Duration.zero
    // Only the BZSt issues qualified confirmations, so the task waits until the BZSt may be called.
    if (request.company !== null && Duration.isPositive(bzstWait)) return waits(bzstWait, null)
    return yield* validate({
      ...request,
      mayAskBzst: !Duration.isPositive(bzstWait),
      ...backgroundCall(keyId),
      input: vatId,
      task: { taskId: task.taskId, closingId: closingId(crypto, task.taskId), opening: null }
    }).pipe(
      Effect.as(closed),
      Effect.catchTag("SourcesUnavailable", (failure) => unanswered(task, failure, bzstWait))
    )
  })

  return Effect.fnUntraced(function* (task: ClaimedTask) {
    const accepted = yield* queue.accepted(task)
    if (task.isExpired) return yield* Effect.as(queue.close(task.taskId, accepted, "expired"), closed)
    const end = (reason: "key_revoked" | "not_allowed" | "requested") =>
      Effect.as(queue.close(task.taskId, accepted, reason), closed)
    if (task.isCancelled) return yield* end("requested")
    const { request } = accepted
    if (request === null) return yield* Effect.as(queue.close(task.taskId, accepted, "erased"), closed)
    const answers = answer(task, accepted, request)
    return yield* (
      request.company === null ? answers : inTurn(request.requesterVatId ?? "", answers, (wait) => waits(wait, null))
    ).pipe(
      Effect.catchTags({
        AlreadyRecorded: () => Effect.succeed(closed),
        ConfirmationRefusal: () => Effect.succeed(closed),
        QuotaExceeded: ({ periodEnd }) => Effect.map(DateTime.now, (now) => waits(quotaDelay(now, periodEnd), quotaFailure)),
        RateLimitExceeded: () => waitsFor(task, "RATE"),
        InvalidApiKey: () => end("key_revoked"),
        ApiKeyRequired: () => end("not_allowed"),
        PaidPlanRequired: () => end("not_allowed"),
        ConfirmationUnsupported: () => end("not_allowed"),
        InvalidRequester: () => end("not_allowed"),
        InvalidVatId: () => end("not_allowed")
      })
    )
  })
})

/** Outcomes of calls in which a source rejected the question. The source would probably reject it again. */
const rejections: ReadonlySet<Attempt["outcome"]> = new Set(["input_rejected", "requester_rejected", "refused"])

/**
 * The code with which VIES blocks a VAT ID. The outcome `blocked` alone is no rejection: it can also mean that VIES blocks the
 * service's address for some time.
 */
const vatIdBlocked = "VAT_BLOCKED"

const isRejection = ({ code, outcome }: Attempt) => rejections.has(outcome) || code === vatIdBlocked

/** Returns true if VIES gave no verdict for another reason than the question or the operator's budget. */
const isOutage = (attempt: Attempt) => attempt.source === "vies" && attempt.outcome !== "over_budget" && !isRejection(attempt)

const failureOf = (attempts: ReadonlyArray<Attempt>) => {
  const last = attempts.at(-1)
  return last === undefined ? "UNAVAILABLE" : `${last.source}:${last.code ?? last.outcome.toUpperCase()}`
}

/**
 * Tasks that wait for the budget of the next day become due at random times in this interval after midnight (UTC), because
 * thousands of tasks due at once would delay other tasks.
 */
const budgetSpread = Duration.minutes(10)

/**
 * Returns the outcome if the budget of VIES calls is spent: the task waits for the next day's budget. A positive `bzstWait` can
 * end the wait earlier, because calls of the BZSt need no budget.
 */
const untilNextBudget = ({ attempts, retryAfterSeconds }: SourcesUnavailable, bzstWait: Duration.Duration) =>
  Effect.map(Random.next, (random) => {
    const nextBudget = Duration.sum(Duration.seconds(retryAfterSeconds), Duration.times(budgetSpread, random))
    return waits(Duration.isPositive(bzstWait) ? Duration.min(bzstWait, nextBudget) : nextBudget, failureOf(attempts))
  })

const waitsFor = (task: ClaimedTask, failure: string, isOutage = false) =>
  Effect.map(Random.next, (random) => waits(retryDelay(task.attempts, random), failure, isOutage))

/** Returns the outcome of an attempt that no source answered. */
const unanswered = (task: ClaimedTask, failure: SourcesUnavailable, bzstWait: Duration.Duration) => {
  const { attempts } = failure
  if (attempts.at(-1)?.code === overBudget) return untilNextBudget(failure, bzstWait)
  if (attempts.length === 0 || !attempts.every(isRejection)) return waitsFor(task, failureOf(attempts), attempts.some(isOutage))
  // A positive `bzstWait` means that the BZSt was not asked yet.
  return Effect.map(Random.next, (random) =>
    waits(Duration.isPositive(bzstWait) ? bzstWait : rejectionDelay(random), failureOf(attempts))
  )
}

const makeTracedAttempt = Effect.gen(function* () {
  const attempt = yield* makeAttempt
  const traceLinks = yield* TraceLinks

  /** The attempt has a trace of its own. Its span links to the request that submitted the validation or the batch. */
  return (task: ClaimedTask) => {
    const attributes = {
      "vatproof.validation_id": task.taskId,
      ...(task.batchId === null ? {} : { "vatproof.batch_id": task.batchId }),
      "vatproof.member_state": task.memberState,
      "vatproof.attempt": task.attempts
    }
    const links = traceLinks.submissionOf(task.batchId ?? task.taskId)
    return Effect.onExit(attempt(task), (exit) => Effect.annotateCurrentSpan("vatproof.outcome", outcomeOf(exit))).pipe(
      Effect.withSpan("TaskEngine.attempt", { kind: "consumer", root: true, links, attributes })
    )
  }
})

const make = Effect.gen(function* () {
  const queue = yield* TaskQueue
  const signals = yield* TaskSignals
  const sources = yield* Sources
  const attempt = yield* makeTracedAttempt
  const pacing = TaskPacing.make()
  const fibers = yield* FiberSet.make()
  const running = new Set<ClaimedTask>()

  const finish = (task: ClaimedTask, exit: Exit.Exit<Outcome, unknown>) => {
    if (Exit.isSuccess(exit)) {
      if (exit.value._tag === "Waits") return queue.defer(task, exit.value)
      // A probe may be closed without an answer of its register, for example by a cancellation.
      const told = task.batchId === null ? signals.closed(task.taskId, task.keyId) : signals.itemEnded
      return Effect.andThen(told, task.isProbe ? queue.defer(task, release) : Effect.void)
    }
    // The service is stopping, so other replicas may claim the task at once.
    if (Cause.hasInterruptsOnly(exit.cause)) return queue.defer(task, release)
    // A database outage needs no action: the lease of the task expires, and the task is tried again.
    return Cause.hasDies(exit.cause)
      ? Effect.andThen(
          Effect.logError(`Answering the validation ${task.taskId} failed unexpectedly; retrying later`, exit.cause),
          queue.defer(task, { wait: retryDelay(task.attempts, 0.5), failure: "DEFECT", isOutage: false })
        )
      : Effect.void
  }

  const run = (task: ClaimedTask) =>
    attempt(task).pipe(
      Effect.onExit((exit) => {
        running.delete(task)
        pacing.ended(task.memberState, Exit.isSuccess(exit) && exit.value._tag === "Closed")
        const counted = Metric.update(attempts({ "vatproof.outcome": outcomeOf(exit) }), 1)
        return Effect.andThen(Effect.andThen(counted, Effect.ignore(finish(task, exit))), signals.wake)
      }),
      Effect.ignoreCause
    )

  const iteration = Effect.gen(function* () {
    const nowMs = yield* monotonicMs
    if (pacing.isStale(nowMs)) pacing.observe((yield* sources.status).memberStates, nowMs)
    const claimed = yield* queue.claim(pacing.slots(nowMs))
    pacing.claimed(claimed)
    for (const task of claimed) {
      running.add(task)
      yield* FiberSet.run(fibers, run(task))
    }
    return claimed.length > 0
  })

  const next = Effect.flatMap(iteration, (busy) =>
    Effect.andThen(Effect.sleep(betweenClaims), busy ? Effect.void : signals.awaitWork(poll))
  )
  yield* Worker.loop("Querying the pending validations", next, { afterFailure: poll })
  const resume = Effect.flatMap(queue.resume, (resumed) => (resumed > 0 ? signals.wake : Effect.void))
  yield* Worker.loop("Resuming validations that wait for quota", resume, { schedule: Schedule.spaced(resumeEvery) })
  const keep = Effect.suspend(() => queue.keep([...running]))
  yield* Worker.loop("Extending the leases of running validations", keep, { schedule: Schedule.spaced(heartbeat) })
})

export const layer = Layer.effectDiscard(make)

/**
 * The background job for batches, which every replica runs. It appends the items of accepted batches chunk by chunk, records
 * cached answers without calling a source, cancels the items of cancelled batches, and records the completion of batches.
 */
import { DateTime, Duration, Effect, Layer, Queue, Result } from "effect"
import { backgroundCall } from "#domain/callers/Admission.ts"
import { Identity } from "#domain/callers/Identity.ts"
import type { QuotaExceeded } from "#domain/callers/Metering.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as Worker from "#domain/concurrency/Worker.ts"
import { BatchSpool, type OpenedChunk } from "#domain/pending/BatchSpool.ts"
import { BatchStore } from "#domain/pending/BatchStore.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { quotaDelay, quotaFailure } from "#domain/pending/TaskDelays.ts"
import { closingId, requestIn } from "#domain/validation/ValidationTask.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"

/** Polling interval for batches that other replicas accepted, or left unfinished when they stopped. */
const poll = Duration.seconds(1)
/**
 * Returns the pause after the append of a chunk: twice the duration of the append. Other appends wait for the lock of the log
 * while a chunk is appended, so the pause lets them run.
 */
const pauseAfter = (duration: Duration.Duration) => Duration.min(Duration.times(duration, 2), Duration.millis(500))
/** Limits on the recording of cached answers: chunks in the queue, concurrent chunks, and concurrent items per chunk. */
const maxQueued = 4
const parallel = { chunks: 2, items: 64 }

/** Returns a function that records the cached answers for the items of a chunk. The task engine answers the other items. */
const makeRecordCached = Effect.gen(function* () {
  const crypto = yield* Crypto
  const identity = yield* Identity
  const signals = yield* TaskSignals
  const spool = yield* BatchSpool
  const { answerFromCache } = yield* ValidateVatId

  const recordItem = ({ batchId, details, first, keyId, maxAge }: OpenedChunk, vatId: string, item: number) => {
    const taskId = computedId(crypto, "item", batchId, String(item))
    return answerFromCache({
      ...requestIn(details?.[item - first] ?? {}),
      maxAge,
      input: vatId,
      ...backgroundCall(keyId),
      task: { taskId, closingId: closingId(crypto, taskId), opening: null }
    }).pipe(Effect.catchTag("AlreadyRecorded", () => Effect.void))
  }

  const recordChunk = Effect.fnUntraced(function* (chunk: OpenedChunk) {
    const { details, first, keyId, questions } = chunk
    // The task engine cancels the items.
    if (details === null) return
    yield* identity.refreshKeyId(keyId)
    const tasks = questions.vat_ids.flatMap((vatId, index) =>
      vatId === null || questions.duplicate_of[first + index] !== undefined ? [] : [{ vatId, item: first + index }]
    )
    yield* Effect.forEach(tasks, ({ item, vatId }) => recordItem(chunk, vatId, item), {
      concurrency: parallel.items,
      discard: true
    })
  })

  /** Without quota an attempt cannot succeed, so the items wait for new quota. */
  const quotaWait = ({ periodEnd }: QuotaExceeded) =>
    Effect.map(DateTime.now, (now) => ({ wait: quotaDelay(now, periodEnd), failure: quotaFailure }))

  return Effect.fn("BatchOpening.recordCached")(function* (chunk: OpenedChunk) {
    const result = yield* Effect.result(
      Effect.as(recordChunk(chunk), immediately).pipe(Effect.catchTag("QuotaExceeded", quotaWait))
    )
    const { failure, wait } = Result.getOrElse(result, () => immediately)
    yield* Effect.ignore(spool.release(chunk, wait, failure))
    yield* Effect.andThen(signals.wake, signals.itemEnded)
  })
})

const noBatch = "00000000-0000-0000-0000-000000000000"
/** Pause between two looks for ended batches: a tenth of the time at most is spent on looks. */
const pauseAfterLook = (duration: Duration.Duration) => Duration.max(Duration.times(duration, 9), Duration.millis(100))

/** Completes batches. The items of a batch may end on any replica, so each replica looks after its own items and once a second. */
const completing = Effect.gen(function* () {
  const signals = yield* TaskSignals
  const store = yield* BatchStore
  let after = noBatch

  const next = Effect.gen(function* () {
    const [duration, { keyIds, last }] = yield* Effect.timed(store.completeNext(after))
    yield* signals.closed(...keyIds)
    after = last ?? noBatch
    yield* Effect.sleep(pauseAfterLook(duration))
    if (last === null) yield* signals.awaitItemEnded(poll)
  })
  yield* Worker.loop("Completing batches", next, { afterFailure: poll })
})

/** Release of a chunk without delay: the task engine can try the remaining items at once. */
const immediately: { readonly wait: Duration.Duration; readonly failure: string | null } = { wait: Duration.zero, failure: null }

const make = Effect.gen(function* () {
  const spool = yield* BatchSpool
  const signals = yield* TaskSignals
  const recordCached = yield* makeRecordCached
  const opened = yield* Queue.bounded<OpenedChunk>(maxQueued)
  /** Id of the batch whose chunk was appended last. The next chunk belongs to the batch with the next id. */
  let lastBatch = noBatch
  /** Position in the log: no batch that was cancelled up to this position has pending items. */
  let endedUpTo = -1

  const open = Effect.gen(function* () {
    const [duration, chunk] = yield* Effect.timed(spool.openNext(lastBatch))
    if (chunk === null) return false
    lastBatch = chunk.batchId
    if (!chunk.isCancelled) yield* Queue.offer(opened, chunk)
    yield* Effect.sleep(pauseAfter(duration))
    return true
  })

  const end = Effect.gen(function* () {
    const [duration, position] = yield* Effect.timed(spool.endNext(endedUpTo))
    if (position === null) return false
    endedUpTo = position
    yield* signals.itemEnded
    yield* Effect.sleep(pauseAfter(duration))
    return true
  })

  const advance = Effect.zipWith(open, end, (hasOpened, hasEnded) => hasOpened || hasEnded)
  const next = Effect.flatMap(advance, (busy) => (busy ? Effect.void : signals.awaitOpening(poll)))
  yield* Worker.loop("Storing batch items or finishing cancelled batches", next, { afterFailure: poll })
  yield* completing
  // The task engine answers the items of a chunk that fails here.
  const recordNext = Effect.flatMap(Queue.take(opened), recordCached)
  yield* Effect.replicateEffect(Worker.loop("Recording cached answers for items of a batch", recordNext), parallel.chunks)
})

export const layer = Layer.effectDiscard(make)

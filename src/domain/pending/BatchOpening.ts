/**
 * Stores the items of accepted batches chunk by chunk, tells those whose answer is cached without a place at a source, and ends the items of cancelled
 * batches. Every replica runs one.
 */
import { DateTime, Duration, Effect, Layer, MutableRef, Queue, Random, Result } from "effect"
import { Identity } from "#domain/callers/Identity.ts"
import type { QuotaExceeded } from "#domain/callers/Metering.ts"
import type { Standing } from "#domain/callers/Standing.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { logDefects } from "#domain/kernel/LogDefects.ts"
import { BatchSpool, type OpenedChunk } from "#domain/pending/BatchSpool.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { closingId, computedId, quotaDelay, quotaFailure } from "#domain/validation/PendingValidation.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"

/** A replica looks for batches of others, and for those that were left, this often. */
const poll = Duration.seconds(1)
/** A pause after each event that locks the log for its items: twice as long as the event took, so that other callers come in between. */
const pauseAfter = (took: Duration.Duration) => Duration.min(Duration.times(took, 2), Duration.millis(500))
/** Chunks that wait to be told, chunks that are told at the same time, and items of each. */
const maxWaiting = 4
const toldAtOnce = { chunks: 2, items: 64 }

/** Records the answers of items that are in the cache, without asking a source. The task engine answers all others. */
const makeTell = Effect.gen(function* () {
  const crypto = yield* Crypto
  const identity = yield* Identity
  const signals = yield* TaskSignals
  const spool = yield* BatchSpool
  const { answerFromCache } = yield* ValidateVatId

  const tell = ({ batchId, keyId }: OpenedChunk, limit: number, vatId: string, item: number) => {
    const taskId = computedId(crypto, "item", batchId, String(item))
    const asked = { requesterVatId: null, company: null, reference: null, forceLive: false }
    return answerFromCache({
      ...asked,
      input: vatId,
      credential: { _tag: "KeyId", keyId },
      // The batch was counted in the caller's minute.
      standing: MutableRef.make<Standing | null>({ usage: { used: 0, limit }, window: null }),
      task: { taskId, closingId: closingId(crypto, taskId), opening: null }
    }).pipe(Effect.catchTag("AlreadyRecorded", () => Effect.void))
  }

  const tellAll = Effect.fnUntraced(function* (chunk: OpenedChunk) {
    const { first, keyId, questions } = chunk
    const { limit } = yield* identity.byKeyId(keyId)
    const tasks = questions.vat_ids.flatMap((vatId, index) =>
      vatId === null || questions.duplicate_of[first + index] !== undefined ? [] : [{ vatId, item: first + index }]
    )
    yield* Effect.forEach(tasks, ({ item, vatId }) => tell(chunk, limit, vatId, item), {
      concurrency: toldAtOnce.items,
      discard: true
    })
  })

  /** Without quota the engine need not try: the items wait as those that it tried several times. */
  const quotaWait = Effect.fnUntraced(function* ({ periodEnd }: QuotaExceeded) {
    const wait = quotaDelay(Number.POSITIVE_INFINITY, yield* Random.next, yield* DateTime.now, periodEnd)
    return { wait, failure: quotaFailure }
  })

  return Effect.fn("BatchOpening.tell")(function* (chunk: OpenedChunk) {
    const told = yield* Effect.result(Effect.as(tellAll(chunk), engine).pipe(Effect.catchTag("QuotaExceeded", quotaWait)))
    const rest = Result.getOrElse(told, () => engine)
    yield* Effect.ignore(spool.release(chunk, rest.wait, rest.failure))
    yield* signals.wake
  })
})

/** What is left is for the engine, at once. */
const engine: { readonly wait: Duration.Duration; readonly failure: string | null } = { wait: Duration.zero, failure: null }

const make = Effect.gen(function* () {
  const spool = yield* BatchSpool
  const signals = yield* TaskSignals
  const tell = yield* makeTell
  const opened = yield* Queue.bounded<OpenedChunk>(maxWaiting)
  /** The batch whose turn was the last, and the position up to which no cancelled batch has pending items. */
  let last = "00000000-0000-0000-0000-000000000000"
  let ended = -1

  const open = Effect.gen(function* () {
    const [took, chunk] = yield* Effect.timed(spool.openNext(last))
    if (chunk === null) return false
    last = chunk.batchId
    if (!chunk.isCancelled) yield* Queue.offer(opened, chunk)
    yield* Effect.sleep(pauseAfter(took))
    return true
  })

  const end = Effect.gen(function* () {
    const [took, position] = yield* Effect.timed(spool.endNext(ended))
    if (position === null) return false
    ended = position
    yield* Effect.sleep(pauseAfter(took))
    return true
  })

  yield* Effect.zipWith(open, end, (hasOpened, hasEnded) => hasOpened || hasEnded).pipe(
    Effect.catchTag("StoreUnavailable", () => Effect.succeed(false)),
    logDefects("Opening batches failed; retrying in 1 s", poll),
    Effect.flatMap((busy) => (busy === true ? Effect.void : signals.awaitOpening(poll))),
    Effect.forever,
    Effect.forkScoped
  )

  const work = Effect.flatMap(Queue.take(opened), (chunk) =>
    tell(chunk).pipe(logDefects("Telling cached answers of a batch failed; the task engine tells them"))
  )
  yield* Effect.forkScoped(Effect.forever(work)).pipe(Effect.replicateEffect(toldAtOnce.chunks))
})

export const layer = Layer.effectDiscard(make)

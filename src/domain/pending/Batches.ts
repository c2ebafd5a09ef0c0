/** The use cases of batches: submit, read, wait, cancel. BatchOpening turns the items into tasks, which the task engine answers. */
import { Clock, Context, Data, DateTime, Duration, Effect, Layer, Schema, Stream } from "effect"
import { Identity } from "#domain/callers/Identity.ts"
import * as IdempotencyRules from "#domain/pending/IdempotencyRules.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { TraceLinks } from "#domain/telemetry/TraceLinks.ts"
import type { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { batchExpiry, type BatchFacts, type BatchItem, type BatchRecord } from "#domain/pending/Batch.ts"
import * as BatchIntake from "#domain/pending/BatchIntake.ts"
import { type BatchChunk, BatchSpool } from "#domain/pending/BatchSpool.ts"
import { BatchStore } from "#domain/pending/BatchStore.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import * as UploadPlaces from "#domain/pending/UploadPlaces.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import type { MaxAge } from "#domain/vat/Freshness.ts"
import type { Refusal } from "#domain/validation/ValidationQuestion.ts"
import { requestIn } from "#domain/validation/ValidationTask.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"

/** The batch does not exist or belongs to another key. The message does not distinguish the two. */
export class BatchNotFound extends Schema.TaggedError<BatchNotFound>()("BatchNotFound", {}) {
  override get message() {
    return "The batch does not exist or belongs to another API key"
  }
}

/** A single validation of the item with this number, from 1, would be refused. */
export class ItemRefused extends Data.TaggedError("ItemRefused")<{ readonly item: number; readonly refusal: Refusal }> {}

/** A batch that a client submits. `items` streams the items while they arrive, and fails if the upload is invalid. */
export interface BatchSubmission<E, R> extends UploadPlaces.Uploader {
  readonly items: Stream.Stream<ReadonlyArray<BatchItem>, E, R>
  readonly maxAge: MaxAge
  readonly idempotencyKey: string | null
  readonly wait: Duration.Duration
}

/** Polling interval while a client waits for the end of a batch. */
const pollEvery = Duration.millis(200)
/** Maximum number of waiting clients per replica, and of these per API key. Further clients get a response at once. */
const maxWaits = { concurrency: 500, capacity: 500, perKey: 50 }
/** Maximum time that the request to cancel a batch waits for the cancellation of all pending items. */
const cancelWait = Duration.seconds(5)
/** Maximum number of open batches per API key. */
const maxOpen = 20
const tooMany = new RateLimitExceeded({
  message: `This API key has ${maxOpen} open batches; wait until one is finished, or cancel one`,
  retryAfterSeconds: 60
})

/** Returns functions that read an upload and accept its items. */
const makeUpload = Effect.gen(function* () {
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const spool = yield* BatchSpool
  const traceLinks = yield* TraceLinks
  const { inPlace, stored } = yield* UploadPlaces.make
  const { requireAllowed } = yield* ValidateVatId
  const scope = yield* Effect.scope

  /**
   * Deletes the chunks of an upload in the background, so that a refusal during an outage does not wait for the timeout of the deletion.
   * The limit of queries in flight bounds the deletions. If one fails, housekeeping deletes the chunks later.
   */
  const discard = (uploadId: string) => Effect.forkIn(Effect.ignore(spool.discard(uploadId)), scope)

  /**
   * Reads all items and passes each chunk to `keep`. Returns the counts, the digests of the chunks and a keyed hash of the batch. Fails if a
   * single validation of an item would be refused.
   */
  const readAll = Effect.fnUntraced(function* <E, R, E2>(
    { caller, items, maxAge }: BatchSubmission<E, R>,
    keep: (chunk: BatchChunk, index: number) => Effect.Effect<string, E2>
  ) {
    const intake = BatchIntake.make(crypto)
    const digests: Array<string> = []
    const keepAll = (chunks: ReadonlyArray<BatchChunk>) =>
      Effect.forEach(chunks, (chunk) => Effect.map(keep(chunk, digests.length), (digest) => digests.push(digest)), {
        discard: true
      })
    let checked = 0
    const check = ({ details, input }: BatchItem) => {
      checked += 1
      const item = checked
      if (details === undefined) return Effect.void
      return Effect.mapError(
        requireAllowed(caller, { input, ...requestIn(details) }),
        (refusal) => new ItemRefused({ item, refusal })
      )
    }
    yield* Stream.runForEach(items, (part) =>
      Effect.andThen(
        Effect.forEach(part, check, { discard: true }),
        Effect.suspend(() => keepAll(intake.add(part)))
      )
    )
    const { chunks, counts, hash } = intake.end()
    yield* keepAll(chunks)
    const requestHash = keyedHash.of("idempotency", maxAge === null ? hash : `${hash}/${maxAge}`)
    return { counts: { ...counts, chunks: digests, maxAge }, requestHash }
  })

  /** Accepts all items, or none if the upload fails. `isNew` is false if a batch with this id exists. */
  const accept = <E, R>(submission: BatchSubmission<E, R>, batchId: string) => {
    const { caller, idempotencyKey } = submission
    const uploadId = crypto.uuidV7()
    const work = Effect.gen(function* () {
      const { counts, requestHash } = yield* readAll(submission, (chunk, index) =>
        stored(spool.keep(uploadId, caller.accountId, index, chunk))
      )
      const expiresAt = DateTime.addDuration(yield* DateTime.now, batchExpiry)
      const batch = { ...counts, batchId, uploadId, caller, expiresAt, requestHash: idempotencyKey === null ? null : requestHash }
      yield* traceLinks.noteSubmission("vatproof.batch_id", batchId)
      const isNew = yield* stored(spool.accept(batch))
      if (!isNew) yield* discard(uploadId)
      return { isNew, requestHash }
    }).pipe(Effect.onError(() => discard(uploadId)))
    return inPlace(submission, work)
  }

  /** Reads a repeated upload, whose batch exists already. Returns the hash of its items and stores nothing. */
  const hashOf = <E, R>(submission: BatchSubmission<E, R>) => {
    const read = readAll(submission, () => Effect.succeed(""))
    return Effect.map(inPlace(submission, read), ({ requestHash }) => requestHash)
  }

  return { accept, hashOf }
})

/** Creates a function that counts the items of a batch by state. */
const makeCounted = Effect.gen(function* () {
  const identity = yield* Identity
  const store = yield* BatchStore

  const isQuotaUsedUp = (keyId: string) =>
    identity.refreshKeyId(keyId).pipe(
      Effect.map(({ limit, used }) => used >= limit),
      Effect.catchTag("InvalidApiKey", () => Effect.succeed(false))
    )

  const counted = Effect.fnUntraced(function* (batch: BatchFacts): Effect.fn.Return<BatchRecord, StoreUnavailable> {
    const counts = yield* store.count(batch.batchId)
    const pending = batch.items - batch.malformed - batch.duplicates - counts.final - counts.expired - counts.cancelled
    const isPaused = counts.waitForQuota > 0 && !batch.isCancelled && (yield* isQuotaUsedUp(batch.keyId))
    return { ...batch, isPaused, counts: { ...counts, pending } }
  })

  return counted
})

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const store = yield* BatchStore
  const signals = yield* TaskSignals
  const once = yield* IdempotencyRules.makeOnce
  const upload = yield* makeUpload
  const counted = yield* makeCounted
  const waits = yield* FairQueue.make(maxWaits)

  const find = Effect.fnUntraced(function* (keyId: string, batchId: string) {
    const batch = yield* store.find(keyId, batchId)
    return batch ?? (yield* new BatchNotFound({}))
  })

  /** Waits until the batch has no pending items, or until `wait` has passed. */
  const awaitEnd = Effect.fnUntraced(function* (batchId: string, wait: Duration.Duration) {
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
    while (yield* store.isOpen(batchId)) {
      const remainingMs = until - (yield* Clock.currentTimeMillis)
      if (remainingMs <= 0) return
      yield* Effect.sleep(Duration.min(Duration.millis(remainingMs), pollEvery))
    }
  })

  const get = Effect.fn("Batches.get")(function* (keyId: string, batchId: string, wait: Duration.Duration) {
    const batch = yield* find(keyId, batchId)
    if (!Duration.isPositive(wait)) return yield* counted(batch)
    yield* waits.admit(keyId, awaitEnd(batchId, wait), () => Effect.void)
    return yield* Effect.flatMap(find(keyId, batchId), counted)
  })

  const accept = Effect.fnUntraced(function* <E, R>(submission: BatchSubmission<E, R>, batchId: string) {
    if ((yield* store.countOpen(submission.caller.keyId, maxOpen)) === maxOpen) return yield* tooMany
    return yield* upload.accept(submission, batchId)
  })

  /** Fails if an earlier upload with the same Idempotency-Key had other items. */
  const requireSame = Effect.fnUntraced(function* (keyId: string, batchId: string, requestHash: string) {
    yield* IdempotencyRules.requireSame((yield* find(keyId, batchId)).requestHash, requestHash)
  })

  const submitKeyed = Effect.fnUntraced(function* <E, R>(submission: BatchSubmission<E, R>, keyId: string, batchId: string) {
    if ((yield* store.find(keyId, batchId)) !== null) {
      yield* requireSame(keyId, batchId, yield* upload.hashOf(submission))
      return false
    }
    const { isNew, requestHash } = yield* once(batchId, accept(submission, batchId))
    if (!isNew) yield* requireSame(keyId, batchId, requestHash)
    return isNew
  })

  const submit = Effect.fn("Batches.submit")(function* <E, R>(submission: BatchSubmission<E, R>) {
    const { caller, idempotencyKey, wait } = submission
    const { keyId } = caller
    const batchId = idempotencyKey === null ? crypto.uuidV7() : computedId(crypto, "batch", keyId, idempotencyKey)
    const isNew =
      idempotencyKey === null ? (yield* accept(submission, batchId)).isNew : yield* submitKeyed(submission, keyId, batchId)
    if (isNew) yield* signals.wakeOpening
    return { batch: yield* get(keyId, batchId, wait), isReplayed: !isNew }
  })

  /** Cancels the pending items of a batch. Items that have ended keep their state. */
  const cancel = Effect.fn("Batches.cancel")(function* (keyId: string, batchId: string) {
    const batch = yield* find(keyId, batchId)
    if (!batch.isCancelled && (yield* store.isOpen(batchId))) {
      yield* store.cancel(batch)
      yield* signals.wakeOpening
    }
    return yield* get(keyId, batchId, cancelWait)
  })

  const page = Effect.fn("Batches.page")(function* (keyId: string, before: number, limit: number) {
    return yield* Effect.forEach(yield* store.page(keyId, before, limit), counted)
  })

  return { submit, get, find, cancel, page, results: store.results }
})

export class Batches extends Context.Service<Batches, Effect.Success<typeof make>>()("vatproof/domain/pending/Batches") {
  static readonly layer = Layer.effect(Batches, make)
}

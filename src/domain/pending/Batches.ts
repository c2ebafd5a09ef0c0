/** Use cases of batches: accept, read, wait, cancel. BatchOpening turns their items into tasks, which the task engine answers. */
import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Schema, Semaphore, Stream } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import * as Idempotency from "#domain/callers/Idempotency.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimits.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { StoreUnavailable } from "#domain/kernel/StoreUnavailable.ts"
import { batchExpiry, type BatchFacts, type BatchItem, type BatchRecord } from "#domain/pending/Batch.ts"
import * as BatchIntake from "#domain/pending/BatchIntake.ts"
import { type BatchChunk, BatchSpool } from "#domain/pending/BatchSpool.ts"
import { BatchStore } from "#domain/pending/BatchStore.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { computedId } from "#domain/validation/PendingValidation.ts"

/** No such batch, or not the key's: a client is not told which. */
export class BatchNotFound extends Schema.TaggedError<BatchNotFound>()("BatchNotFound", {}) {
  override get message() {
    return "There is no such batch of yours"
  }
}

/** `items` arrive in parts while the client sends them; what is wrong with them is the failure of the stream. */
export interface BatchSubmission<E, R> {
  readonly caller: KeyCaller
  readonly items: Stream.Stream<ReadonlyArray<BatchItem>, E, R>
  readonly idempotencyKey: string | null
  readonly wait: Duration.Duration
}

/** How often a client that waits looks whether the batch is finished. */
const lookEvery = Duration.millis(200)
/** How long a cancellation waits for the end of the items. */
const cancelWait = Duration.seconds(5)
/** Clients of a replica that may wait; further ones are answered at once. */
const maxWaiting = 500
/** Uploads of a replica at the same time; each keeps the VAT IDs of its items in memory. */
const maxUploads = 8
/** Batches of a key that are not finished. */
const maxOpen = 20
const tooMany = new RateLimitExceeded({
  message: `${maxOpen} batches of this API key are not finished: wait for one of them, or cancel it`,
  retryAfterSeconds: 60
})

/** Takes in uploads. */
const makeUpload = Effect.gen(function* () {
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const spool = yield* BatchSpool
  const room = yield* Semaphore.make(maxUploads)

  /** Reads all items, and gives each chunk of them to `keep`. */
  const readAll = Effect.fnUntraced(function* <E, R, E2>(
    items: Stream.Stream<ReadonlyArray<BatchItem>, E, R>,
    keep: (chunk: BatchChunk, nth: number) => Effect.Effect<void, E2>
  ) {
    const intake = BatchIntake.make(crypto)
    let kept = 0
    const keepAll = (chunks: ReadonlyArray<BatchChunk>) =>
      Effect.forEach(chunks, (chunk) => keep(chunk, kept++), { discard: true })
    yield* Stream.runForEach(items, (part) => keepAll(intake.add(part)))
    const { chunks, counts, hash } = intake.end()
    yield* keepAll(chunks)
    return { counts, requestHash: keyedHash.of("idempotency", hash) }
  })

  const ifRoom = <A, E, R>(upload: Effect.Effect<A, E, R>) =>
    Effect.flatMap(room.withPermitsIfAvailable(1)(upload), (done) =>
      Option.isSome(done)
        ? Effect.succeed(done.value)
        : Effect.fail(new StoreUnavailable({ cause: "Too many batches are being uploaded" }))
    )

  /** Accepts the batch as a whole or, if the upload fails, not at all. `isNew` is false if there is one with this id. */
  const accept = <E, R>({ caller, idempotencyKey, items }: BatchSubmission<E, R>, batchId: string) => {
    const uploadId = crypto.uuidV7()
    return Effect.gen(function* () {
      const { counts, requestHash } = yield* readAll(items, (chunk, nth) => spool.keep(uploadId, caller.accountId, nth, chunk))
      const expiresAt = DateTime.addDuration(yield* DateTime.now, batchExpiry)
      const batch = { ...counts, batchId, uploadId, caller, expiresAt, requestHash: idempotencyKey === null ? null : requestHash }
      const isNew = yield* spool.accept(batch)
      if (!isNew) yield* spool.discard(uploadId)
      return { isNew, requestHash }
      // What cannot be deleted now is left to housekeeping.
    }).pipe(
      Effect.onError(() => Effect.ignore(spool.discard(uploadId))),
      ifRoom
    )
  }

  /** The hash of an upload whose batch is there already. */
  const hashOf = <E, R>({ items }: BatchSubmission<E, R>) =>
    Effect.map(ifRoom(readAll(items, () => Effect.void)), ({ requestHash }) => requestHash)

  return { accept, hashOf }
})

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const store = yield* BatchStore
  const signals = yield* TaskSignals
  const once = yield* Idempotency.makeOnce
  const upload = yield* makeUpload
  const waiters = yield* Semaphore.make(maxWaiting)

  const find = Effect.fnUntraced(function* (keyId: string, batchId: string) {
    const found = yield* store.find(keyId, batchId)
    return found ?? (yield* new BatchNotFound({}))
  })

  const counted = (batch: BatchFacts) =>
    Effect.map(store.count(batch.batchId), (counts): BatchRecord => {
      const ended = counts.final + counts.expired + counts.cancelled
      return { ...batch, counts: { ...counts, pending: batch.items - batch.malformed - batch.duplicates - ended } }
    })

  /** Waits until no item is pending. */
  const awaitEnd = Effect.fnUntraced(function* (batchId: string, wait: Duration.Duration) {
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
    while (yield* store.isOpen(batchId)) {
      const leftMs = until - (yield* Clock.currentTimeMillis)
      if (leftMs <= 0) return
      yield* Effect.sleep(Duration.min(Duration.millis(leftMs), lookEvery))
    }
  })

  const get = Effect.fn("Batches.get")(function* (keyId: string, batchId: string, wait: Duration.Duration) {
    const batch = yield* find(keyId, batchId)
    if (!Duration.isPositive(wait)) return yield* counted(batch)
    yield* waiters.withPermitsIfAvailable(1)(awaitEnd(batchId, wait))
    return yield* Effect.flatMap(find(keyId, batchId), counted)
  })

  const accept = Effect.fnUntraced(function* <E, R>(submission: BatchSubmission<E, R>, batchId: string) {
    if ((yield* store.countOpen(submission.caller.keyId, maxOpen)) === maxOpen) return yield* tooMany
    return yield* upload.accept(submission, batchId)
  })

  /** The same items came with the same key before. */
  const requireSame = Effect.fnUntraced(function* (keyId: string, batchId: string, requestHash: string) {
    yield* Idempotency.requireSame((yield* find(keyId, batchId)).requestHash, requestHash)
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

  /** What has ended stays what it is. */
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

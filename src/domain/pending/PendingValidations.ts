/** The use cases of validations that may be answered later: submit, read, wait, cancel. */
import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Result, Schema } from "effect"
import type { KeyCaller } from "#domain/callers/Caller.ts"
import { makeOnce, requireSame } from "#domain/pending/IdempotencyRules.ts"
import { Crypto } from "#domain/kernel/Crypto.ts"
import { KeyedHash } from "#domain/kernel/KeyedHash.ts"
import { RequestContext } from "#domain/kernel/RequestContext.ts"
import { computedId } from "#domain/log/ComputedId.ts"
import { closingId, expiry } from "#domain/validation/ValidationTask.ts"
import { TraceLinks } from "#domain/telemetry/TraceLinks.ts"
import { TaskQueue } from "#domain/pending/TaskQueue.ts"
import { TaskSignals } from "#domain/pending/TaskSignals.ts"
import { ValidationReader, type ValidationRecord } from "#domain/pending/ValidationReader.ts"
import { ValidateVatId } from "#domain/validation/ValidateVatId.ts"
import * as VatIds from "#domain/vat/VatId.ts"
import type { Validation, ValidationRequest } from "#domain/validation/ValidationQuestion.ts"

/** The validation does not exist or belongs to another key. The message does not distinguish the two. */
export class ValidationNotFound extends Schema.TaggedError<ValidationNotFound>()("ValidationNotFound", {}) {
  override get message() {
    return "The validation does not exist or belongs to another API key"
  }
}

/**
 * A validation that a client submits. If there is no answer within `wait`, the response is the pending validation. `wait` is null
 * if the client accepts no pending validation. `requestedAt` is the time at which the request arrived. `matchFormat` is the format
 * of the response to a GET; null for a POST. It must be the same in all requests with one Idempotency-Key, so a GET and a POST
 * cannot share a key.
 */
export interface Submission {
  readonly caller: KeyCaller
  readonly request: Omit<ValidationRequest, "task">
  readonly requestedAt: DateTime.Utc
  readonly expiresIn: Duration.Duration | null
  readonly idempotencyKey: string | null
  readonly wait: Duration.Duration | null
  readonly matchFormat: "words" | "letters" | null
}

/** `isReplayed` is true if an earlier request had the same content and Idempotency-Key. */
export interface Submitted {
  readonly record: ValidationRecord
  readonly isReplayed: boolean
}

/** Polling interval for waiting clients, because another replica may close their tasks. All clients poll at the same time, to share a statement. */
export const pollEveryMs = 500

const makeAwaitClosed = Effect.gen(function* () {
  const reader = yield* ValidationReader
  const signals = yield* TaskSignals

  /** Waits until a validation is no longer pending. */
  const awaitClosed = Effect.fnUntraced(function* (keyId: string, validationId: string, wait: Duration.Duration) {
    const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
    while (true) {
      const nowMs = yield* Clock.currentTimeMillis
      if (nowMs >= until) return
      const summary = yield* reader.summary(keyId, validationId)
      if (Option.isNone(summary) || summary.value.state !== "pending") return
      yield* signals.awaitClosed(validationId, Math.min(until - nowMs, pollEveryMs - (nowMs % pollEveryMs)))
    }
  })

  return (keyId: string, validationId: string, wait: Duration.Duration) =>
    signals.inPlace(keyId, awaitClosed(keyId, validationId, wait), Effect.void)
})

const make = Effect.gen(function* () {
  const crypto = yield* Crypto
  const keyedHash = yield* KeyedHash
  const queue = yield* TaskQueue
  const reader = yield* ValidationReader
  const signals = yield* TaskSignals
  const once = yield* makeOnce
  const { accept, validate } = yield* ValidateVatId
  const awaitClosed = yield* makeAwaitClosed

  const find = Effect.fnUntraced(function* (keyId: string, validationId: string) {
    const record = yield* reader.find(keyId, validationId)
    return Option.isSome(record) ? record.value : yield* new ValidationNotFound({})
  })

  const get = Effect.fn("PendingValidations.get")(function* (keyId: string, validationId: string, wait: Duration.Duration) {
    if (Duration.isPositive(wait)) yield* awaitClosed(keyId, validationId, wait)
    return yield* find(keyId, validationId)
  })

  /**
   * Returns the validation of an earlier request with the same Idempotency-Key. Fails if no such request was stored, or if that request
   * had different content.
   */
  const replay = Effect.fnUntraced(function* ({ caller, wait }: Submission, validationId: string, requestHash: string) {
    const before = yield* find(caller.keyId, validationId)
    yield* requireSame(before.requestHash, requestHash)
    return { record: yield* get(caller.keyId, validationId, wait ?? Duration.zero), isReplayed: true } satisfies Submitted
  })

  /** Stores a task and returns its record. A client that does not wait gets the record that was stored, without reading it. */
  const submitTask = Effect.fnUntraced(function* (submission: Submission, taskId: string, requestHash: string | null) {
    const { caller, expiresIn, request, requestedAt, wait } = submission
    const expiresAt = DateTime.addDuration(requestedAt, expiresIn ?? expiry.usual)
    const referenceHash = request.reference === null ? null : referenceHashOf(caller.keyId, request.reference)
    const opening = { requestedAt, expiresAt, requestHash, referenceHash }
    const task = { taskId, closingId: closingId(crypto, taskId), opening }
    yield* (yield* TraceLinks).noteSubmission("vatproof.validation_id", taskId)
    const answer = yield* wait === null ? validate({ ...request, task }) : accept(request, task)
    yield* answer === null ? signals.wake : signals.closed(caller.keyId)
    if (answer === null && wait !== null && Duration.isPositive(wait)) return yield* get(caller.keyId, taskId, wait)
    const { requestId } = yield* RequestContext
    const { value: vatId } = yield* Effect.fromResult(VatIds.parse(request.input))
    const stored = { validationId: taskId, vatId, acceptedAt: requestedAt, expiresAt, requestId, requestHash }
    return storedRecord({ ...stored, reference: request.reference }, answer)
  })

  const referenceHashOf = (keyId: string, reference: string) => keyedHash.of("reference", `${keyId}\0${reference}`)

  const submit = Effect.fn("PendingValidations.submit")(function* (submission: Submission) {
    const { caller, idempotencyKey, wait } = submission
    if (idempotencyKey === null) {
      const taskId = crypto.uuidV7()
      // Only this request has the id, so an event that is stored already is its own: the response to the append was lost.
      const stored = get(caller.keyId, taskId, wait ?? Duration.zero)
      const record = yield* Effect.catchTag(submitTask(submission, taskId, null), "AlreadyRecorded", () => stored)
      return { record, isReplayed: false } satisfies Submitted
    }
    const taskId = computedId(crypto, "validation", caller.keyId, idempotencyKey)
    const requestHash = keyedHash.of("idempotency", fingerprintOf(submission))
    const replayed = replay(submission, taskId, requestHash)
    const first = Effect.map(submitTask(submission, taskId, requestHash), (record) => ({ record, isReplayed: false }))
    const firstUnlessStored = Effect.catchTag(replayed, "ValidationNotFound", () => first)
    return yield* replayed.pipe(
      // The lease rejects concurrent requests with the same Idempotency-Key. Its previous holder may have stored the validation since
      // the first read.
      Effect.catchTag("ValidationNotFound", () => once(taskId, firstUnlessStored)),
      Effect.catchTag("AlreadyRecorded", () => replayed)
    )
  })

  /** Cancels a validation if it is pending. Returns its record. */
  const cancel = Effect.fn("PendingValidations.cancel")(function* (caller: KeyCaller, validationId: string) {
    const { accountId, keyId } = caller
    const { state, vatId } = yield* find(keyId, validationId)
    if (state === "pending") {
      yield* queue.close(validationId, { accountId, keyId, vatId, request: null }, "requested")
      yield* signals.closed(validationId, keyId)
    }
    return yield* find(keyId, validationId)
  })

  return { submit, get, cancel, referenceHashOf, page: reader.page }
})

type Stored = "acceptedAt" | "expiresAt" | "reference" | "requestHash" | "requestId" | "validationId" | "vatId"

/** Returns the record of a task that was just stored, with its answer or pending. */
const storedRecord = (stored: Pick<ValidationRecord, Stored>, validation: Validation | null): ValidationRecord => ({
  ...stored,
  state: validation === null ? "pending" : "final",
  attempts: 0,
  lastFailure: null,
  nextAttemptAt: stored.acceptedAt,
  validation,
  reason: null
})

const normalized = (vatId: string) =>
  Result.match(VatIds.parse(vatId), { onFailure: () => vatId, onSuccess: ({ value }) => value })

/** Returns the content that must be the same in all requests with one Idempotency-Key. */
const fingerprintOf = ({ expiresIn, matchFormat, request }: Submission) => {
  const { company, input, maxAge, reference, requesterVatId } = request
  const { city, name, street, zip } = company ?? { city: null, name: null, street: null, zip: null }
  const content = [
    normalized(input),
    requesterVatId === null ? null : normalized(requesterVatId),
    name,
    street,
    zip,
    city,
    maxAge,
    reference,
    expiresIn === null ? null : Duration.toMillis(expiresIn),
    matchFormat
  ]
  return JSON.stringify(content)
}

export class PendingValidations extends Context.Service<PendingValidations, Effect.Success<typeof make>>()(
  "vatproof/domain/pending/PendingValidations"
) {
  static readonly layer = Layer.effect(PendingValidations, make)
}

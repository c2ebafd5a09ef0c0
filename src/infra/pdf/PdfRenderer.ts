/**
 * Receipts as PDF, made in a thread of their own: one takes a tenth of a second of computing, for which nobody else should wait. The
 * thread starts with the first one.
 */
import { Worker } from "node:worker_threads"
import { Effect, Fiber, Layer } from "effect"
import type { ReceiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimits.ts"
import { PdfUnavailable, ReceiptPdf } from "#domain/receipts/document/ReceiptPdf.ts"
import * as FairQueue from "#domain/kernel/FairQueue.ts"

/** Documents under way or waiting, and how long one may take with its waiting. */
const bounds = { concurrency: 1, capacity: 10, perKey: 3 }
const patience = "20 seconds"
const retryAfterSeconds = 5

/** A document needs a few megabytes. It gets none of this process's environment. */
const options = { resourceLimits: { maxOldGenerationSizeMb: 256 }, env: {}, execArgv: [] }

const unavailable = Effect.fail(new PdfUnavailable({ retryAfterSeconds }))
const tooMany = new RateLimitExceeded({ message: `At most ${bounds.perKey} PDFs of one API key at a time`, retryAfterSeconds })
const rejected = (bound: FairQueue.Bound): Effect.Effect<never, PdfUnavailable | RateLimitExceeded> =>
  bound === "perKey" ? Effect.fail(tooMany) : unavailable

const make = Effect.gen(function* () {
  const queue = yield* FairQueue.make(bounds)
  const scope = yield* Effect.scope
  let thread: Worker | null = null

  const stop = Effect.suspend(() => {
    const stopped = thread
    thread = null
    return stopped === null ? Effect.void : Effect.promise(() => stopped.terminate())
  })
  yield* Effect.addFinalizer(() => stop)

  const start = () => {
    const started = new Worker(new URL("PdfWorker.ts", import.meta.url), options)
    started.unref()
    return started
  }

  /** A thread that does not answer is ended; the next document gets a new one. */
  const ask = (document: ReceiptDocument) =>
    Effect.callback<Uint8Array>((resume) => {
      const asked = thread ?? start()
      thread = asked
      const onMessage = (bytes: unknown) => {
        asked.off("error", onError)
        resume(bytes instanceof Uint8Array ? Effect.succeed(bytes) : Effect.die("The PDF thread gave no bytes"))
      }
      const onError = (cause: unknown) => {
        asked.off("message", onMessage)
        thread = null
        resume(Effect.die(cause))
      }
      asked.once("message", onMessage)
      asked.once("error", onError)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, which has no origin
      asked.postMessage(document)
      return stop
    })

  /** What was begun is brought to its end also when nobody waits for it any more: to end the thread costs the next one more. */
  const render = Effect.fn("PdfRenderer.render")((keyId: string, document: ReceiptDocument) =>
    Effect.suspend(() => {
      let isWanted = true
      const asking = Effect.suspend(() => (isWanted ? ask(document) : unavailable))
      const work = queue
        .admit(keyId, queue.inSlot(keyId, asking), rejected)
        .pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => unavailable }))
      return Effect.flatMap(Effect.forkIn(work, scope), Fiber.join).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            isWanted = false
          })
        )
      )
    })
  )

  return ReceiptPdf.of({ render })
})

export const layer = Layer.effect(ReceiptPdf, make)

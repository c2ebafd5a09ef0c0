/**
 * Renders receipts as PDF in a worker thread, because a receipt takes a tenth of a second of CPU. The thread starts with the
 * first receipt.
 */
import { Worker } from "node:worker_threads"
import { Effect, Fiber, Layer } from "effect"
import type { ReceiptDocument } from "#domain/receipts/document/ReceiptDocument.ts"
import { RateLimitExceeded } from "#domain/callers/RateLimiter.ts"
import { PdfUnavailable, ReceiptPdf } from "#domain/receipts/document/ReceiptPdf.ts"
import * as FairQueue from "#domain/concurrency/FairQueue.ts"

/** One PDF is rendered at a time. At most 10 are in progress or waiting, 3 of them for one API key. `timeout` includes the wait. */
const bounds = { concurrency: 1, capacity: 10, perKey: 3 }
const timeout = "20 seconds"
const retryAfterSeconds = 5

/**
 * Options of the worker thread. Rendering a document needs a few megabytes. With V8's default size of the young generation, the
 * thread would use 50 MB more memory. The thread gets no environment variables of this process.
 */
const options = { resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 256 }, env: {}, execArgv: [] }

const unavailable = Effect.fail(new PdfUnavailable({ retryAfterSeconds }))
const tooMany = new RateLimitExceeded({
  message: `An API key may have at most ${bounds.perKey} PDFs in progress; retry after ${retryAfterSeconds} seconds`,
  retryAfterSeconds
})
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
    const started = new Worker(new URL(import.meta.resolve("#infra/pdf/PdfWorker.ts")), options)
    started.unref()
    return started
  }

  /** Renders a document in the worker thread. A timeout ends the thread, and the next document starts a new thread. */
  const renderInThread = (document: ReceiptDocument) =>
    Effect.callback<Uint8Array>((resume) => {
      const worker = thread ?? start()
      thread = worker
      const onMessage = (bytes: unknown) => {
        worker.off("error", onError)
        resume(
          bytes instanceof Uint8Array
            ? Effect.succeed(bytes)
            : Effect.die("The worker thread for PDFs sent a message that is not a PDF (a defect)")
        )
      }
      const onError = (cause: unknown) => {
        worker.off("message", onMessage)
        thread = null
        resume(Effect.die(cause))
      }
      worker.once("message", onMessage)
      worker.once("error", onError)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, which has no origin
      worker.postMessage(document)
      return stop
    })

  /**
   * Returns a PDF. If the client disconnects, the thread still finishes the document that it is rendering, because ending the
   * thread and starting a new one would cost more.
   */
  const render = Effect.fn("PdfRenderer.render")((keyId: string, document: ReceiptDocument) =>
    Effect.suspend(() => {
      let isWanted = true
      const renderIfWanted = Effect.suspend(() => (isWanted ? renderInThread(document) : unavailable))
      const work = queue
        .admit(keyId, queue.inSlot(keyId, renderIfWanted), rejected)
        .pipe(Effect.timeoutOrElse({ duration: timeout, orElse: () => unavailable }))
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

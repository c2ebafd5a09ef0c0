/**
 * Receipts as PDF, made in a thread of their own: one takes a tenth of a second of computing, for which nobody else should wait. The
 * thread starts with the first one.
 */
import { Worker } from "node:worker_threads"
import { Effect, Layer, Semaphore } from "effect"
import type { ReceiptDocument } from "#domain/ReceiptDocument.ts"
import { PdfUnavailable, ReceiptPdf } from "#domain/ReceiptPdf.ts"

/** Documents that may wait for their turn, and how long one may take with its waiting. */
const maxWaiting = 10
const patience = "20 seconds"
const retryAfterSeconds = 5

/** A document needs a few megabytes. It gets none of this process's environment. */
const options = { resourceLimits: { maxOldGenerationSizeMb: 256 }, env: {}, execArgv: [] }

const unavailable = Effect.fail(new PdfUnavailable({ retryAfterSeconds }))

const make = Effect.gen(function* () {
  const turn = Semaphore.makeUnsafe(1)
  let thread: Worker | null = null
  let waiting = 0

  const stop = Effect.suspend(() => {
    const stopped = thread
    thread = null
    return stopped === null ? Effect.void : Effect.promise(() => stopped.terminate())
  })
  yield* Effect.addFinalizer(() => stop)

  const start = () => {
    const started = new Worker(new URL("ReceiptPdfWorker.ts", import.meta.url), options)
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

  const render = Effect.fn("ReceiptPdf.render")((document: ReceiptDocument) =>
    Effect.suspend(() => {
      if (waiting >= maxWaiting) return unavailable
      waiting += 1
      return turn
        .withPermits(1)(ask(document))
        .pipe(
          Effect.timeoutOrElse({ duration: patience, orElse: () => unavailable }),
          Effect.ensuring(
            Effect.sync(() => {
              waiting -= 1
            })
          )
        )
    })
  )

  return ReceiptPdf.of({ render })
})

export const layer = Layer.effect(ReceiptPdf, make)

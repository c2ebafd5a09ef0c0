/** Long polls for what the service answers later. */
import { VatproofError } from "./errors.ts"
import { type CallOptions, type Input, type Options, pause } from "./transport.ts"
import type { Batch, BatchResult, EndedValidation, FinalValidation, Operations, PendingValidation } from "./types.ts"

/** Operations with an answer in JSON. */
export type JsonOperation = {
  [Id in keyof Operations]: [Operations[Id]["result"]] extends [never] ? never : Id
}[keyof Operations]

/** The input may be left out if nothing in it is required. */
export type Args<Id extends keyof Operations> =
  object extends Input<Id> ? [input?: Input<Id>, options?: CallOptions] : [input: Input<Id>, options?: CallOptions]

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined
  /** Longest wait. Default: 15 minutes for a validation, 24 hours for a batch. */
  readonly timeoutMs?: number | undefined
}

export type Call = <Id extends JsonOperation>(id: Id, ...args: Args<Id>) => Promise<Operations[Id]["result"]>

/** The service waits 30 s for an answer. */
const longPollSeconds = 30
/** A replica with too many waiting clients answers at once. */
const leastPollMs = 1_000
const pageSize = 500
/** Wait after a failed poll without a `Retry-After`: an outage of the service does not end a wait. */
const failedPollMs = 5_000

const isOpen = ({ status }: Batch) => status === "running" || status === "paused" || status === "cancelling"

export const makeWaiting = (call: Call, { tryTimeoutMs = 40_000 }: Options) => {
  const waitSeconds = Math.max(0, Math.min(longPollSeconds, Math.floor((tryTimeoutMs - 5_000) / 1000)))

  /** Long polls until `isDone`. */
  const waitFor = async <T>(
    poll: (wait: number) => Promise<T>,
    isDone: (state: T) => boolean,
    ms: number,
    signal?: AbortSignal
  ) => {
    const end = Date.now() + ms
    for (;;) {
      const started = Date.now()
      let waitMs = 0
      try {
        const state = await poll(Math.max(0, Math.min(waitSeconds, Math.floor((end - started) / 1000))))
        if (isDone(state)) return state
        waitMs = Math.max(0, leastPollMs - (Date.now() - started))
      } catch (error) {
        if (!(error instanceof VatproofError && error.retryable)) throw error
        waitMs = error.retryAfterSeconds === undefined ? failedPollMs : error.retryAfterSeconds * 1000
      }
      if (Date.now() + waitMs >= end) {
        throw new VatproofError({ code: "TIMEOUT", status: 0, message: "There is no answer yet; ask for it later by its id" })
      }
      await pause(waitMs, signal)
    }
  }

  const finalOf = async (accepted: PendingValidation | FinalValidation | EndedValidation, wait: WaitOptions = {}) => {
    const { validation_id } = accepted
    const { signal, timeoutMs = 15 * 60_000 } = wait
    const poll = (seconds: number) => call("getValidation", { path: { validation_id }, query: { wait: seconds } }, { signal })
    const state =
      accepted.status === "pending" ? await waitFor(poll, ({ status }) => status !== "pending", timeoutMs, signal) : accepted
    if (state.status === "final" && "valid" in state && typeof state.valid === "boolean") return state
    const code = state.status === "cancelled" ? "CANCELLED" : "EXPIRED"
    throw new VatproofError({ code, status: 0, message: `The validation ${validation_id} ended without an answer of a source` })
  }

  const resultsOf = async function* (batch_id: string, wait: WaitOptions = {}): AsyncGenerator<BatchResult, void, undefined> {
    const { signal, timeoutMs = 24 * 60 * 60_000 } = wait
    await waitFor(
      (seconds) => call("getBatch", { path: { batch_id }, query: { wait: seconds } }, { signal }),
      (batch) => !isOpen(batch),
      timeoutMs,
      signal
    )
    for (let cursor: string | null | undefined; cursor !== null;) {
      const query = cursor === undefined ? { limit: pageSize } : { limit: pageSize, cursor }
      const page = await call("listBatchResults", { path: { batch_id }, query }, { signal })
      yield* page.data
      cursor = page.next_cursor
    }
  }

  return { finalOf, resultsOf }
}

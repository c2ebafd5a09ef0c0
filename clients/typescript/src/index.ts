/** A client for Vatproof: `vatproof({ baseUrl, apiKey })`. */
import { VatproofError } from "./errors.ts"
import { type Answer, type CallOptions, type Input, makeTransport, type Options } from "./transport.ts"
import type { Batch, BatchResult, FinalValidation, Operations, PendingValidation, ValidationResult } from "./types.ts"
import { type Args, type Call, makeWaiting, type WaitOptions } from "./waiting.ts"

export { VatproofError, type ClientCode, type Failure } from "./errors.ts"
export type { Answer, CallOptions, Options } from "./transport.ts"
export type { Args, Call, JsonOperation, WaitOptions } from "./waiting.ts"
export type * from "./types.ts"

export interface ValidateQuery extends Omit<NonNullable<Input<"validateVatId">["query"]>, "force_live"> {
  readonly force_live?: boolean | undefined
}

export interface Submission extends Promise<PendingValidation | FinalValidation> {
  /** Waits for the source's answer. An end without one is an error: `EXPIRED`, `CANCELLED`, or `TIMEOUT` while it is pending. */
  readonly final: (options?: WaitOptions) => Promise<FinalValidation>
}

export interface BatchSubmission extends Promise<Batch> {
  /** Waits for the end of the batch and gives the results in the order of the upload. */
  readonly results: (options?: WaitOptions) => AsyncGenerator<BatchResult, void, undefined>
}

export type BatchItem = Input<"submitBatch">["body"]["items"][number]

export const vatproof = (options: Options) => {
  const { json, send } = makeTransport(options)
  const call: Call = (id, ...[input = {}, more]) => json(id, input, "application/json", more)

  const { finalOf, resultsOf } = makeWaiting(call, options)

  return {
    /** Calls any operation by its name in `/openapi.json`. */
    call,

    /** Calls any operation and gives its answer as bytes: a PDF, a page, or JSON with its headers. */
    open: <Id extends keyof Operations>(id: Id, accept: string, ...[input = {}, more]: Args<Id>): Promise<Answer> =>
      send(id, input, accept, more),

    /** Gives a source's answer, possibly a cached one. Without one it fails: an outage is never `valid: false`. */
    validate: async (
      vat_id: string,
      { force_live, ...query }: ValidateQuery = {},
      more?: CallOptions
    ): Promise<ValidationResult> => {
      const live =
        force_live === undefined ? query : { ...query, force_live: force_live ? ("true" as const) : ("false" as const) }
      const result = await call("validateVatId", { path: { vat_id }, query: live }, more)
      if (typeof result.valid === "boolean") return result
      throw new VatproofError({ code: "UNEXPECTED_RESPONSE", status: 200, message: "The response has no verdict" })
    },

    validations: {
      /** Accepts a validation that is answered even if no source answers now. */
      submit: (body: Input<"submitValidation">["body"], more?: CallOptions): Submission => {
        const accepted = call("submitValidation", { body }, { prefer: "respond-async", ...more })
        return Object.assign(accepted, {
          final: async (wait?: WaitOptions) => finalOf(await accepted, { signal: more?.signal, ...wait })
        })
      },
      /** Waits for the answer to an earlier submission. */
      final: async (validation_id: string, wait: WaitOptions = {}) =>
        finalOf(await call("getValidation", { path: { validation_id } }, { signal: wait.signal }), wait)
    },

    batches: {
      /** Uploads up to 50,000 items. */
      submit: (
        items: Iterable<BatchItem> | AsyncIterable<BatchItem>,
        { max_age, ...more }: CallOptions & NonNullable<Input<"submitBatch">["query"]> = {}
      ): BatchSubmission => {
        const upload = async () => {
          const all: Array<BatchItem> = []
          for await (const item of items) all.push(item)
          return call("submitBatch", { body: { items: all }, ...(max_age === undefined ? {} : { query: { max_age } }) }, more)
        }
        const accepted = upload()
        const results = async function* (wait?: WaitOptions) {
          yield* resultsOf((await accepted).batch_id, { signal: more.signal, ...wait })
        }
        return Object.assign(accepted, { results })
      },
      /** Waits for the end of an earlier batch and gives its results. */
      results: resultsOf
    }
  }
}
